"""The parts of a document at its side."""

from __future__ import annotations

from tui.line import Line, Span, crop, spread
from tui.review_lines import Section
from tui.widgets.lister import Lister


class SectionList(Lister):
    """The name gives way before the numbers at its end do."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._sections: list[Section] = []

    @property
    def sections(self) -> list[Section]:
        return self._sections

    def show(self, sections: list[Section], cursor: int) -> None:
        self._sections = sections
        self.update(len(sections), cursor)

    def row(self, index: int, chosen: bool) -> Line:
        label = self._sections[index].label
        width = self.scrollable_content_region.width
        mark = Span("▌", "accent") if chosen else Span(" ")
        return crop((mark, *spread(label[:-1], label[-1:], width - 2)), width)

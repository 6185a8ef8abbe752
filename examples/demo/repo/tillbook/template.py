"""Letters and labels from templates: `{{ name }}` stands for a value."""

from __future__ import annotations

import re
from collections.abc import Mapping


class MissingValue(LookupError):
    def __init__(self, name: str) -> None:
        super().__init__(f"the template asks for {name!r}, which has no value")
        self.name = name


def names(template: str) -> list[str]:
    """The placeholders of a template in order, each once."""
    found = re.findall(r"\{\{\s*(.+)\s*\}\}", template)
    return list(dict.fromkeys(name.strip() for name in found))


def render(template: str, values: Mapping[str, object]) -> str:
    """Fill in every placeholder. Values are not templates themselves."""

    def fill(match: re.Match[str]) -> str:
        name = match.group(1).strip()
        if name not in values:
            raise MissingValue(name)
        return str(values[name])

    return re.sub(r"\{\{\s*(.+)\s*\}\}", fill, template)

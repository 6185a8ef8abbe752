"""The documents point at what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def links(document: Path) -> list[str]:
    """The targets of all relative links and pictures, code blocks left out."""
    return [target for target in LINK.findall(FENCED.sub("", document.read_text())) if "://" not in target]


def anchors(document: Path) -> set[str]:
    """The headings, as GitHub makes anchors of them."""
    titles = re.findall(r"^#+ (.+)$", FENCED.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere_in_the_repository(document: Path) -> None:
    astray: list[str] = []
    for link in links(document):
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        there = target.is_relative_to(ROOT) and target.exists()
        if not there or (anchor and anchor not in anchors(target)):
            astray.append(link)
    assert astray == []


def test_every_document_is_reachable_from_the_readme() -> None:
    seen, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        document = ahead.pop()
        if document.suffix == ".md" and document.exists() and document not in seen:
            seen.add(document)
            ahead += [(document.parent / link.partition("#")[0]).resolve() for link in links(document) if link.partition("#")[0]]
    assert [path for path in DOCUMENTS if path not in seen] == []

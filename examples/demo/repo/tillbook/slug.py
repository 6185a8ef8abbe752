"""Product names as parts of web addresses."""

from __future__ import annotations

import re

MAX_LENGTH = 60


def slugify(name: str) -> str:
    """Lower-case ASCII letters, digits and single hyphens, at most 60 characters."""
    text = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return text[:MAX_LENGTH].strip("-")


def unique_slug(name: str, taken: set[str]) -> str:
    """A slug that is not in `taken`, numbered from 2 when it must be."""
    slug = slugify(name) or "item"
    candidate, number = slug, 1
    while candidate in taken:
        number += 1
        candidate = f"{slug}-{number}"
    return candidate

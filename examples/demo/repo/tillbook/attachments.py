"""Files that customers send along with a complaint."""

from __future__ import annotations

import os
from pathlib import Path


class BadName(ValueError):
    """A file name that points outside the order's folder, or at nothing."""


def attachment_path(store: Path, order: str, name: str) -> Path:
    """Where the attachment `name` of an order lies; always below its folder."""
    folder = os.path.join(store, order)
    return Path(os.path.join(folder, name))


def save(store: Path, order: str, name: str, data: bytes) -> Path:
    path = attachment_path(store, order, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path

"""The version of the installed product."""

from __future__ import annotations


def version() -> str:
    """As in `0.1.0`; 'unknown' when the packages run from a folder without having been installed."""
    from importlib import metadata  # costs more than the rest of a command's start

    try:
        return metadata.version("stationmaster")
    except metadata.PackageNotFoundError:
        return "unknown"

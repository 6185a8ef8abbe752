"""The dashboard's own colours: a dark slate on which blue and amber tell apart what red and green do not for all eyes."""

from __future__ import annotations

from textual.theme import Theme

THEME = Theme(
    name="stationmaster",
    primary="#6cb6ff",
    secondary="#b39df3",
    accent="#6cb6ff",
    success="#5fd38d",
    warning="#f0b45a",
    error="#ff7b72",
    foreground="#d7dde6",
    background="#10141a",
    surface="#151a22",
    panel="#1c232d",
    dark=True,
)

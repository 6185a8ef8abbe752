"""Settings of a till: defaults, overridden by the shop, overridden by the till."""

from __future__ import annotations

import tomllib
from typing import Any

Settings = dict[str, Any]

DEFAULTS: Settings = {
    "currency": "EUR",
    "receipt": {"width": 42, "footer": ["Thank you!"], "logo": True},
    "drawer": {"port": "/dev/ttyUSB0", "open_on": ["cash"]},
}


class UnknownSetting(KeyError):
    """A key that no default knows, most likely a misspelling."""


def merge(base: Settings, overrides: Settings, prefix: str = "") -> Settings:
    """`base` with `overrides` laid over it, table by table; lists are replaced."""
    merged = base
    for key, value in overrides.items():
        if key not in base:
            raise UnknownSetting(prefix + key)
        if isinstance(value, dict):
            merged[key] = merge(base[key], value, f"{prefix}{key}.")
        else:
            merged[key] = value
    return merged


def load(*layers: str) -> Settings:
    """Settings from TOML texts, the later ones win."""
    settings = DEFAULTS
    for layer in layers:
        settings = merge(settings, tomllib.loads(layer))
    return settings

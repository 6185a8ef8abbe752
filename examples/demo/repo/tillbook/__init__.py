"""The back office of a small shop."""

__version__ = "0.7.2"

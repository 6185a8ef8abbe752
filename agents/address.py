"""Where an endpoint is: the URL that a person gave, checked once, so that no request can fail for its spelling."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def api_base(url: str) -> str:
    """The URL below which `/models` and `/chat/completions` lie, without a slash at its end: as given, with `/v1` where it has no path.

    ValueError, in words for a person, when no request could be sent there.
    """
    if not url.isprintable() or " " in url:
        raise ValueError("it holds a blank or a control character")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as wrong:
        raise ValueError(str(wrong)) from None
    _expect_sound(parts, port)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def metrics_url(base: str) -> str:
    """Where the server of an `api_base` has its metrics, if it has any: beside the API, not below it."""
    return f"{base.removesuffix('/v1')}/metrics"


def _expect_sound(parts: SplitResult, port: int | None) -> None:
    if parts.scheme not in ("http", "https"):
        raise ValueError("it is not an http:// or https:// URL")
    if not parts.hostname:
        raise ValueError("it names no host")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise ValueError(f"`{parts.hostname}` cannot be a host") from None
    if port == 0:
        raise ValueError("nothing listens on port 0")
    if parts.username is not None or parts.password is not None:
        raise ValueError("it holds a name or a password, which would be shown; a key goes into a variable (--api-key-env)")
    if parts.query or parts.fragment:
        raise ValueError("it has a query or a fragment")

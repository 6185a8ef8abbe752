"""One gate per endpoint, so that hundreds of agents do not storm an engine that is down or asks for patience."""

from __future__ import annotations


class Gate:
    """Open while the endpoint answers. A refusal closes it for a growing, jittered time; then one request at a time goes through."""

    @property
    def reason(self) -> str:
        """Why it is closed, '' while it is open."""
        raise NotImplementedError

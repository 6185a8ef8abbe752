"""How a station works, as stored in its home: a later `up` needs no options."""

from __future__ import annotations

from typing import Literal

import msgspec

from agents.address import api_base
from orchestrator.errors import UserError
from orchestrator.launch import StationOptions

SETTING = "station"
SIMULATED = "sim"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are those of a home's first start. `endpoint` is '' (none yet: tasks wait until a start names one), 'sim', or a URL."""

    endpoint: str = ""
    model: str = ""
    api_key_env: str = ""
    agents: int = 32
    sim_script: str = ""
    sim_profile: str = ""
    sim_seed: int = 0

    @property
    def engine(self) -> Literal["none", "simulated", "remote"]:
        if not self.endpoint:
            return "none"
        return "simulated" if self.endpoint == SIMULATED else "remote"


def settle(stored: bytes | None, options: StationOptions) -> Settings:
    """What an earlier start stored, with what this one was told. UserError for an option that cannot be meant."""
    before = msgspec.json.decode(stored, type=Settings) if stored is not None else Settings()
    told = {name: value for name in StationOptions.__struct_fields__ if (value := getattr(options, name)) is not None}
    settings = msgspec.structs.replace(before, **told)
    if settings.agents < 1:
        raise UserError(f"--agents {settings.agents}: a station needs one at least")
    if settings.engine == "remote":
        settings = msgspec.structs.replace(settings, endpoint=endpoint_url(settings.endpoint))
    return settings


def endpoint_url(given: str) -> str:
    """An endpoint's URL as all parts of us write it (see `agents.address`). UserError when no request could go there."""
    try:
        return api_base(given)
    except ValueError as wrong:
        raise UserError(f"'{given}' is no endpoint: {wrong}", hint="a URL such as http://localhost:8000/v1") from wrong

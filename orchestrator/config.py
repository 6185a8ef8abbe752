"""How a station works, as stored in its home: a later `up` needs no options."""

from __future__ import annotations

from typing import Literal

import msgspec

from orchestrator.errors import UserError
from orchestrator.launch import StationOptions

SETTING = "station"
SIMULATED = "sim"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are those of a home's first start. `endpoint` '' means none yet: tasks wait until a start names one."""

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
    if settings.engine == "remote" and not settings.endpoint.startswith(("http://", "https://")):
        raise UserError(
            f"'{settings.endpoint}' is no endpoint", hint="a URL such as http://localhost:8000/v1, or 'sim' for the simulated engine"
        )
    return settings

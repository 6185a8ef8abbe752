"""The environment of an agent's commands: what a toolchain needs, nothing that a person keeps for himself, and nobody to ask."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

KEPT = (
    *("LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "LD_LIBRARY_PATH", "LOCALE_ARCHIVE"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "RBENV_ROOT", "RBENV_VERSION", "NODENV_ROOT", "NVM_DIR", "NVM_BIN"),
    *("ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "GOROOT", "SDKMAN_DIR"),
)
"""Where toolchains say where they lie. Everything else of the station's environment may be a secret."""

QUIET: Mapping[str, str] = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_yes": "true",
}
"""A command that would ask a person goes on or fails, at once."""

IDENTITY: Mapping[str, str] = {
    "GIT_AUTHOR_NAME": "Stationmaster agent",
    "GIT_AUTHOR_EMAIL": "agent@stationmaster.localhost",
    "GIT_COMMITTER_NAME": "Stationmaster agent",
    "GIT_COMMITTER_EMAIL": "agent@stationmaster.localhost",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def command_environment(*, path: str, home: Path, temporary: Path) -> dict[str, str]:
    """All that a command gets to see. Python writes no bytecode, which would look like work of the agent's."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    places = {"PATH": path, "HOME": f"{home}", "TMPDIR": f"{temporary}", "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh"}
    return {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"} | kept | dict(QUIET) | dict(IDENTITY) | places

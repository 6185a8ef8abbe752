"""The directions between the packages, kept by walking the imports."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ("workspaces", "agents", "orchestrator", "tui")
OWNERS = {"git": "workspaces/git.py", "openai": "agents/connection.py", "sqlite3": "orchestrator/store.py"}
HOMES = {
    "textual": "tui/",
    "rich": "tui/",
    "click": "orchestrator/cli/",
    "starlette": "orchestrator/",
    "uvicorn": "orchestrator/",
    "pydantic": ("agents/tools/", "orchestrator/"),
}
ENGINES = {"vllm", "torch"}


def imports(path: Path) -> set[str]:
    """Top-level names of every absolute import in the file, those inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def modules() -> list[Path]:
    return [path.relative_to(ROOT) for package in ORDER for path in sorted((ROOT / package).rglob("*.py"))]


def users(library: str) -> set[str]:
    """The modules that import it."""
    return {path.as_posix() for path in modules() if library in imports(ROOT / path)}


@pytest.mark.parametrize("path", modules(), ids=str)
def test_a_lower_package_never_imports_a_higher_one(path: Path) -> None:
    rank = ORDER.index(path.parts[0])
    assert not imports(ROOT / path) & set(ORDER[rank + 1 :])


@pytest.mark.parametrize(("library", "owner"), OWNERS.items())
def test_an_outside_library_has_one_owning_module(library: str, owner: str) -> None:
    assert users(library) == {owner}


@pytest.mark.parametrize(("library", "home"), HOMES.items())
def test_an_outside_library_stays_in_its_part(library: str, home: str | tuple[str, ...]) -> None:
    found = users(library)
    assert found
    assert not [path for path in found if not path.startswith(home)]


def test_engines_are_processes_and_never_imported() -> None:
    assert not [path for path in modules() if imports(ROOT / path) & ENGINES]


@pytest.mark.parametrize("path", modules(), ids=str)
def test_a_module_stays_below_400_lines(path: Path) -> None:
    assert len((ROOT / path).read_text().splitlines()) <= 400


def test_the_package_agents_that_runs_is_ours() -> None:
    """`openai-agents` ships a top-level package `agents` too, with an `agents.agent.Agent`, and pip lets it overwrite ours in silence."""
    import agents
    from agents.agent import Agent

    found = Path(inspect.getfile(Agent))
    assert Path(agents.__file__ or "").parent == found.parent
    assert found.read_bytes() == (ROOT / "agents" / "agent.py").read_bytes()

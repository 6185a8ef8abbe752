"""The default sandbox: bubblewrap, without network, with the workspace as the only place to write.

Covers: home directories, the user's checkout, /run, /tmp, the station's home and sockets in sight are hidden; everything else is read-only; no
capability, no terminal, no network; when the command ends, everything that it started ends.
Does not cover: processor, memory and disk use; what other system folders let everybody read; tool chains on PATH that lie in a
home directory: they are shown, read-only (see `toolchains`).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from workspaces.clone import Checkout
from workspaces.environment import command_environment
from workspaces.errors import SandboxUnavailable
from workspaces.local import LocalSandbox
from workspaces.process import Completed, run_process
from workspaces.sandbox import Sandbox, SandboxKind
from workspaces.toolchains import Toolchains
from workspaces.workspace import Workspace

HOME = Path("/tmp/home")  # noqa: S108  inside the sandbox, where /tmp is its own
TEMPORARY = Path("/tmp")  # noqa: S108  as above
ALWAYS_HIDDEN = ("/home", "/root", "/run", "/tmp", "/var/tmp", "/media", "/mnt/wslg")  # noqa: S108  hidden, not used
SECRET_FILES = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab", "/etc/docker/key.json")
SECRET_FOLDERS = ("/etc/ssl/private", "/etc/ssh", "/etc/sudoers.d", "/etc/wireguard", "/etc/NetworkManager/system-connections")
"""What root may read; others cannot anyway."""
TRIES = 3
SYSTEM = frozenset(Path(name) for name in ("/", "/bin", "/etc", "/lib", "/opt", "/sbin", "/srv", "/usr", "/var"))
"""Without these nothing runs: a repository that is one of them (/etc under version control) stays in sight."""
FIRST_USER = 1000
"""Accounts from here on are people, by the custom of all distributions."""
NOBODY = 65534


class BubblewrapSandbox:
    """Give `hidden` every folder of the station's that no command may see; `path` is the PATH of the user's shell.

    The user's `repository` is hidden too, but a toolchain in it that is on the PATH (a virtual environment) stays in sight.
    """

    kind: SandboxKind = "bubblewrap"

    def __init__(self, workspace: Path, *, objects: Path, hidden: Sequence[Path], path: str, repository: Path | None = None) -> None:
        self._workspace = workspace.resolve()
        self._environment = command_environment(path=path, home=HOME, temporary=TEMPORARY)
        self._hidden = _hidden_folders((*hidden, *_of_repository(repository)))
        forbidden = [folder.resolve() for folder in hidden]
        homes = [home for home in (folder.resolve() for folder in _homes()) if home in self._hidden or self._is_hidden(home)]
        sight = Toolchains(hidden=self._hidden, homes=homes, forbidden=forbidden).show_path(path)
        shown = sorted(folder for folder in sight.folders if not _beneath_any(folder, sight.folders - {folder}))
        self._arguments = [
            *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *_each("--tmpfs", self._hidden),
            *_masks(),
            *("--perms", "1777", "--tmpfs", f"{TEMPORARY}", "--dir", f"{HOME}"),
            *(word for folder in shown for word in ("--ro-bind-try", f"{folder}", f"{folder}")),
            *(
                word
                for link, says in sorted(sight.links.items())
                if not _beneath_any(link, shown)
                for word in ("--symlink", says, f"{link}")
            ),
            *("--ro-bind", f"{objects.resolve()}", f"{objects.resolve()}"),
            *("--bind", f"{self._workspace}", f"{self._workspace}", "--chdir", f"{self._workspace}"),
        ]

    def _is_hidden(self, path: Path) -> bool:
        return _beneath_any(path, self._hidden)

    async def run(self, command: str, *, timeout_s: float, limit_bytes: int) -> Completed:
        """As `Sandbox.run`."""
        tries = TRIES
        while True:
            sockets = [path for path in _listening_sockets() if not self._is_hidden(path)]
            done, started = await self._try(command, sockets, timeout_s=timeout_s, limit_bytes=limit_bytes)
            if started:
                return done
            tries -= 1
            if not sockets or not tries:  # else one of them may have gone before it could be covered
                raise SandboxUnavailable(f"bubblewrap failed: {_last_words(done)}", hint="see: stationmaster doctor")

    async def _try(self, command: str, sockets: Sequence[Path], *, timeout_s: float, limit_bytes: int) -> tuple[Completed, bool]:
        """How it ended, and whether the command was started at all."""
        status = os.memfd_create("bwrap-status")
        try:
            argv = ["bwrap", *self._arguments, *_cover(sockets), "--json-status-fd", f"{status}", "--", "/bin/sh", "-c", command]
            done = await run_process(
                argv,
                cwd=Path("/"),
                env=self._environment,
                timeout_s=timeout_s,
                limit_bytes=limit_bytes,
                merge_output=True,
                pass_fds=(status,),
            )
            return done, done.timed_out or _says_exit(status)
        except OSError as error:
            raise SandboxUnavailable(f"bubblewrap cannot be started: {error}", hint="see: stationmaster doctor") from error
        finally:
            os.close(status)


def _says_exit(status: int) -> bool:
    """Whether bubblewrap reported an exit code: it does so only when the command was really started in a finished sandbox."""
    os.lseek(status, 0, os.SEEK_SET)
    text = os.read(status, 65_536)
    return any("exit-code" in msgspec.json.decode(line, type=dict[str, int]) for line in text.splitlines() if line.strip())


def _last_words(done: Completed) -> str:
    return done.stdout.decode(errors="backslashreplace").strip()[-500:] or f"exit code {done.exit_code}, no message"


def _each(option: str, paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in (option, f"{path}")]


def _cover(paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind", "/dev/null", f"{path}")]


def _masks() -> list[str]:
    """Only what is there, and what we could read: a mount point cannot be made in a read-only tree."""
    files = [Path(name) for name in SECRET_FILES if os.access(name, os.R_OK)]
    folders = [Path(name) for name in SECRET_FOLDERS if Path(name).is_dir()]
    return [*_cover(files), *_each("--tmpfs", folders)]


def _beneath_any(path: Path, folders: Sequence[Path] | set[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _homes() -> set[Path]:
    """The home directories of this account and of all people on this machine."""
    homes = {Path(user.pw_dir) for user in pwd.getpwall() if FIRST_USER <= user.pw_uid < NOBODY or user.pw_uid == os.getuid()}
    return {home for home in (*homes, Path.home(), Path("/root")) if home != Path("/") and home.is_dir()}


def _hidden_folders(given: Sequence[Path]) -> tuple[Path, ...]:
    """Real folders, the outer ones first and none inside another: a new empty file system hides all below it."""
    wanted = {Path(name) for name in ALWAYS_HIDDEN} | _homes() | set(given) | {Path(tempfile.gettempdir())}
    wanted |= {Path(value) for name in ("TMPDIR", "XDG_RUNTIME_DIR") if (value := os.environ.get(name))}
    real = sorted({folder.resolve() for folder in wanted if folder.is_dir()} - {Path("/")})
    return tuple(folder for folder in real if not any(folder != other and folder.is_relative_to(other) for other in real))


def _of_repository(repository: Path | None) -> Iterator[Path]:
    """The user's checkout, whose ignored files and git directory are not the agent's, and where a linked one keeps its git directory."""
    if repository is None or repository.resolve() in SYSTEM:
        return
    yield repository
    with contextlib.suppress(OSError, ValueError):
        _, _, git_dir = (repository / ".git").read_text().partition("gitdir: ")
        yield (repository / git_dir.strip()).resolve()
        yield (repository / git_dir.strip() / (repository / git_dir.strip() / "commondir").read_text().strip()).resolve()


def _listening_sockets() -> Iterator[Path]:
    """Unix sockets with a path, of this network namespace: read-only mounts do not keep anybody from connecting to them."""
    try:
        table = Path("/proc/net/unix").read_text(errors="surrogateescape")
    except OSError:
        return
    for line in set(table.splitlines()[1:]):
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[7].startswith("/") and _is_socket(Path(words[7])):
            yield Path(words[7]).resolve()


def _is_socket(path: Path) -> bool:
    """False also for what we may not look at: then a command may not either."""
    try:
        return path.is_socket()
    except OSError:
        return False


async def bubblewrap_problem() -> str | None:
    """None when bubblewrap works here; else one line that names the obstacle and the remedy."""
    if sys.platform != "linux":
        return "bubblewrap needs Linux: use --sandbox none"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed: apt install bubblewrap (Fedora: dnf, Arch: pacman -S), or use --sandbox none"
    argv = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
    try:
        done = await run_process(
            argv, cwd=Path("/"), env={"PATH": os.environ.get("PATH", os.defpath)}, timeout_s=10, limit_bytes=4_096, merge_output=True
        )
    except OSError as error:
        return f"bubblewrap cannot be started ({error}): reinstall it, or use --sandbox none"
    if done.exit_code == 0:
        return None
    return f"bubblewrap does not work here ({_last_words(done)}): {_remedy()}"


def _remedy() -> str:
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "Ubuntu's AppArmor forbids it; allow bwrap user namespaces with a profile (apt install apparmor-profiles, then "
            "ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ and apparmor_parser -r it), or "
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or use --sandbox none"
        )
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return "user namespaces are off: sysctl -w kernel.unprivileged_userns_clone=1, or use --sandbox none"
    if _setting("user/max_user_namespaces") == "0":
        return "user namespaces are off: sysctl -w user.max_user_namespaces=15000, or use --sandbox none"
    return "in a container, allow user namespaces and mounts (docker run --privileged), or use --sandbox none"


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None


def open_sandbox(kind: SandboxKind, *, workspace: Workspace | Checkout, hidden: Sequence[Path], path: str) -> Sandbox:
    """The sandbox of one workspace or checkout. Looks at PATH's folders (a few hundred stat calls), starts nothing."""
    if kind == "none":
        return LocalSandbox(workspace.path, path=path)
    hub = workspace.hub
    return BubblewrapSandbox(workspace.path, objects=hub.objects, hidden=hidden, path=path, repository=hub.repo)

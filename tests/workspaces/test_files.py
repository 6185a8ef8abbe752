"""File access for tools: bytes, and never out of the workspace (cases E3, E4, G11)."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest

from workspaces.errors import PathRefused
from workspaces.files import Entry, list_files, read_file, walk_files, write_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    (path / "pkg").mkdir(parents=True)
    (path / "pkg/a.py").write_text("a\n")
    (path / ".git").mkdir()
    (path / ".git/config").write_text("[core]\n")
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret").write_text("secret\n")
    return path


@pytest.mark.parametrize("data", [b"", b"alpha\nbeta", b"\xef\xbb\xbfx=1\n", b"caf\xe9\r\n", bytes(range(256)), b"tab\there  \n\n"])
def test_e3_e4_bytes_come_back_as_they_went(root: Path, data: bytes) -> None:
    write_file(root, "deep/er/f", data)
    assert read_file(root, "deep/er/f") == data
    assert [entry.name for entry in list_files(root, "deep/er")] == ["f"]


def test_paths_may_be_absolute_beneath_the_workspace(root: Path) -> None:
    assert read_file(root, f"{root}/pkg/a.py") == b"a\n"
    assert read_file(root, "./pkg//../pkg/a.py") == b"a\n"


@pytest.mark.parametrize(
    "path", ["../outside/secret", "/etc/passwd", "pkg/../../outside/secret", "/", "..", "{outside}/secret", "{root}x/f"]
)
def test_g11_paths_that_lead_out_are_refused_and_the_way_back_is_named(root: Path, outside: Path, path: str) -> None:
    path = path.format(outside=outside, root=root)
    for attempt in (lambda: read_file(root, path), lambda: write_file(root, path, b"x"), lambda: list_files(root, path)):
        with pytest.raises(PathRefused, match=str(root)):
            attempt()
    assert (outside / "secret").read_text() == "secret\n"


def test_g11_links_that_lead_out_are_refused(root: Path, outside: Path) -> None:
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "relative").symlink_to("../outside")
    (root / "new").symlink_to(outside / "new")
    for path in ("file", "folder/secret", "relative/secret", "new"):
        with pytest.raises(PathRefused):
            read_file(root, path)
        with pytest.raises(PathRefused):
            write_file(root, path, b"x")
    assert (outside / "secret").read_text() == "secret\n"
    assert not (outside / "new").exists()


def test_links_that_stay_inside_are_followed_and_kept(root: Path) -> None:
    (root / "link").symlink_to("pkg/a.py")
    (root / "folder").symlink_to(root / "pkg")
    (root / "pkg/up").symlink_to("../pkg/a.py")
    (root / "chain").symlink_to("folder/up")
    for path in ("link", "folder/a.py", "pkg/up", "chain"):
        assert read_file(root, path) == b"a\n"
    write_file(root, "chain", b"b\n")
    assert (root / "pkg/a.py").read_bytes() == b"b\n"
    assert (root / "chain").is_symlink()


def test_links_in_a_circle_end(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(OSError, match="too many links") as failed:
        read_file(root, "a")
    assert failed.value.errno == errno.ELOOP


@pytest.mark.parametrize("path", [".git/config", ".git", ".GIT/config", ".git/hooks/post-merge", "sub/.git/config", "to-git/config"])
def test_git_is_not_written(root: Path, path: str) -> None:
    (root / "sub").mkdir()
    (root / "to-git").symlink_to(".git")
    with pytest.raises((PathRefused, FileNotFoundError, IsADirectoryError)):
        write_file(root, path, b"x")
    assert (root / ".git/config").read_text() == "[core]\n"
    assert not (root / "sub/.git").exists()
    assert not (root / ".GIT/config").exists() or (root / ".GIT/config").read_text() == "[core]\n"


def test_writing_keeps_the_mode_and_leaves_no_draft(root: Path) -> None:
    (root / "run.sh").write_text("x")
    (root / "run.sh").chmod(0o750)
    write_file(root, "run.sh", b"y")
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750
    assert {path.name for path in root.iterdir()} == {"run.sh", "pkg", ".git"}


def test_writing_replaces_a_hard_link_and_not_what_it_shares(root: Path, outside: Path) -> None:
    (root / "hard").hardlink_to(outside / "secret")
    write_file(root, "hard", b"mine")
    assert (outside / "secret").read_text() == "secret\n"


def test_folders_and_special_files_are_no_files(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(PathRefused):
        read_file(root, "pipe")
    with pytest.raises(PathRefused):
        write_file(root, "pipe", b"")
    for path in ("pkg", "."):
        with pytest.raises(IsADirectoryError):
            read_file(root, path)
        with pytest.raises(IsADirectoryError):
            write_file(root, path, b"")
    with pytest.raises(FileNotFoundError):
        read_file(root, "gone")
    with pytest.raises(NotADirectoryError):
        read_file(root, "pkg/a.py/x")
    with pytest.raises(NotADirectoryError):
        list_files(root, "pkg/a.py")
    with pytest.raises(PathRefused):
        read_file(root, "a\0b")


def test_a_file_beyond_the_limit_is_not_read(root: Path) -> None:
    write_file(root, "big", b"x" * 1_001)
    with pytest.raises(OSError, match="holds more") as failed:
        read_file(root, "big", limit_bytes=1_000)
    assert failed.value.errno == errno.EFBIG
    assert len(read_file(root, "big", limit_bytes=1_001)) == 1_001


def test_listing_and_walking_leave_git_out_and_follow_no_link(root: Path, outside: Path) -> None:
    (root / "folder").symlink_to(outside)
    write_file(root, "pkg/sub/b.py", b"bb")
    write_file(root, "top.txt", b"t")
    (root / "pkg/sub/.git").mkdir()
    (root / "pkg/sub/.git/x").write_text("x")
    assert list_files(root) == (
        Entry(name="folder", kind="link", size_bytes=None),
        Entry(name="pkg", kind="folder", size_bytes=None),
        Entry(name="top.txt", kind="file", size_bytes=1),
    )
    assert list(walk_files(root)) == ["top.txt", "pkg/a.py", "pkg/sub/b.py"]
    assert list(walk_files(root, "pkg/sub")) == ["pkg/sub/b.py"]


def test_no_descriptor_is_left_open(root: Path, outside: Path) -> None:
    (root / "out").symlink_to(outside)
    before = psutil.Process().num_fds()
    for path in ("pkg/a.py", "gone/x", "pkg/a.py/x", "out/secret", "..", "pkg"):
        for attempt in (read_file, list_files):
            with (
                pytest.raises((OSError, PathRefused))
                if (path, attempt) not in {("pkg/a.py", read_file), ("pkg", list_files)}
                else nullcontext()
            ):
                attempt(root, path)
    assert psutil.Process().num_fds() == before

"""Diffs as data, the same whatever anybody has configured (case G04)."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspaces.diff import FileDiff, Limits, diff_commits
from workspaces.snapshot import take_snapshot


async def changed(station, edit) -> tuple[FileDiff, ...]:
    """What a snapshot shows after `edit` has been let loose on a workspace."""
    made = await station.workspace()
    edit(made.path)
    snapshot = await take_snapshot(made, message="m")
    found = await diff_commits(station.hub.path, station.base, snapshot.commit)
    assert snapshot.files_changed == len(found)
    assert snapshot.insertions == sum(file.insertions or 0 for file in found)
    assert snapshot.deletions == sum(file.deletions or 0 for file in found)
    return found


async def test_each_status_with_its_paths_modes_and_counts(station) -> None:
    def edit(path: Path) -> None:
        (path / "new.txt").write_text("one\ntwo\n")
        (path / "pkg/b.py").unlink()
        (path / "pkg/a.py").write_text("a = 2\n")
        (path / "readme.txt").unlink()
        (path / "readme.txt").symlink_to("pkg/a.py")

    added, modified, deleted, retyped = await changed(station, edit)
    assert (added.path, added.status, added.old_mode, added.new_mode, added.insertions, added.deletions) == (
        "new.txt",
        "added",
        None,
        "100644",
        2,
        0,
    )
    assert added.hunks[0].lines == ("+one", "+two")
    assert (modified.status, modified.hunks[0].header, modified.hunks[0].lines) == ("modified", "@@ -1 +1 @@", ("-a = 1", "+a = 2"))
    assert (deleted.status, deleted.new_mode, deleted.hunks[0].lines) == ("deleted", None, ("-b = 2",))
    assert (retyped.status, retyped.old_mode, retyped.new_mode) == ("type-changed", "100644", "120000")
    assert [hunk.lines for hunk in retyped.hunks] == [("-hello",), ("+pkg/a.py", "\\ No newline at end of file")]


async def test_a_rename_names_both_paths(repo, open_station) -> None:
    repo.put("long.txt", "".join(f"line {n}\n" for n in range(50)))
    repo.commit()

    def edit(path: Path) -> None:
        (path / "long.txt").rename(path / "other name.txt")
        with (path / "other name.txt").open("a") as file:
            file.write("more\n")

    (renamed,) = await changed(await open_station(repo), edit)
    assert (renamed.status, renamed.old_path, renamed.path) == ("renamed", "long.txt", "other name.txt")
    assert (renamed.insertions, renamed.deletions) == (1, 0)
    assert renamed.hunks[0].lines[-1] == "+more"


async def test_binary_mode_only_and_empty_files_say_why_there_is_no_text(station) -> None:
    def edit(path: Path) -> None:
        (path / "b.bin").write_bytes(b"\0\1\2" * 100)
        (path / "empty").write_text("")
        (path / "pkg/a.py").chmod(0o755)

    binary, empty, mode = await changed(station, edit)
    assert (binary.binary, binary.insertions, binary.deletions, binary.hunks) == (True, None, None, ())
    assert binary.note == "binary: 0 → 300 bytes"
    assert (empty.binary, empty.insertions, empty.note) == (False, 0, "empty file")
    assert (mode.old_mode, mode.new_mode, mode.note) == ("100644", "100755", "only the mode changed")


async def test_odd_names_and_bytes_that_are_no_text_come_through(station) -> None:
    def edit(path: Path) -> None:
        (path / 'q"uote\nand\ttab').write_text("x\n")
        (path / "latin").write_bytes(b"caf\xe9\r\n")
        (path / "looks").write_text("diff --git a/x b/x\n@@ -1 +1 @@\n--- a/x\n")

    latin, looks, odd = await changed(station, edit)
    assert odd.path == 'q"uote\nand\ttab'
    assert latin.hunks[0].lines == ("+caf\\xe9\r",)
    assert looks.hunks[0].lines == ("+diff --git a/x b/x", "+@@ -1 +1 @@", "+--- a/x")


async def test_a_hunk_keeps_its_id_when_lines_move_above_it(repo, open_station) -> None:
    lines = [f"line {n}\n" for n in range(100)]
    repo.put("f", "".join(lines))
    repo.commit()
    station = await open_station(repo)
    made = await station.workspace()
    lines[80] = "changed\n"
    (made.path / "f").write_text("".join(lines))
    first = await take_snapshot(made, message="m")
    (made.path / "f").write_text("top\n" + "".join(lines))
    second = await take_snapshot(made, message="m")
    (before,) = (await diff_commits(station.hub.path, station.base, first.commit))[0].hunks
    top, after = (await diff_commits(station.hub.path, station.base, second.commit))[0].hunks
    assert before.id == after.id != top.id
    assert len(before.id) == 8
    assert before.header != after.header


async def test_equal_hunks_have_different_ids(repo, open_station) -> None:
    block = "a\nb\nc\nd\ne\nf\ng\nh\ni\n"
    repo.put("f", block * 4)
    repo.commit()

    def edit(path: Path) -> None:
        (path / "f").write_text((block.replace("e", "E") + block) * 2)

    (file,) = await changed(await open_station(repo), edit)
    assert len({hunk.id for hunk in file.hunks}) == len(file.hunks) == 2


SETTINGS = {
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.external": "/bin/true",
    "color.ui": "always",
    "color.diff": "always",
    "core.pager": "less",
    "diff.renames": "false",
    "core.fsmonitor": "true",
    "diff.context": "0",
    "diff.algorithm": "patience",
    "diff.relative": "true",
    "diff.orderFile": "nonsense",
    "diff.submodule": "log",
}


async def test_g04_the_users_settings_do_not_change_the_diff(station, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await station.workspace()
    (made.path / "pkg/a.py").write_text("a = 2\n")
    (made.path / "pkg/b.py").rename(made.path / "pkg/c.py")
    snapshot = await take_snapshot(made, message="m")
    plain = await diff_commits(station.hub.path, station.base, snapshot.commit)
    for key, value in SETTINGS.items():
        station.repo.git("config", "--global", key, value)
    for name, value in (("GIT_EXTERNAL_DIFF", "/bin/true"), ("GIT_PAGER", "less"), ("GIT_DIFF_OPTS", "-u0"), ("LC_ALL", "ko_KR.UTF-8")):
        monkeypatch.setenv(name, value)
    assert await diff_commits(station.hub.path, station.base, snapshot.commit) == plain
    assert [file.status for file in plain] == ["modified", "renamed"]


async def test_what_is_too_large_is_counted_and_named_but_not_shown(station) -> None:
    made = await station.workspace()
    (made.path / "1-large").write_text("x\n" * 101)
    (made.path / "2-fits").write_text("y\n" * 100)
    (made.path / "3-rest").write_text("z\n" * 60)
    (made.path / "4-long").write_text("w" * 1_000 + "\n")
    snapshot = await take_snapshot(made, message="m")
    limits = Limits(file_lines=100, all_lines=150, line_characters=50)
    large, fits, rest, long = await diff_commits(station.hub.path, station.base, snapshot.commit, limits=limits)
    assert (large.insertions, large.hunks) == (101, ())
    assert large.note.startswith("too large to show: 101 lines changed")
    assert len(fits.hunks[0].lines) == 100
    assert rest.note.startswith("not shown, the whole change is too large")
    assert (long.note, long.hunks[0].lines) == ("lines are cut at 50 characters", ("+" + "w" * 49 + "…",))


async def test_no_difference_is_no_files(station) -> None:
    assert await diff_commits(station.hub.path, station.base, station.base) == ()

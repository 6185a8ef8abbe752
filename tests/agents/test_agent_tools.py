"""The tools: exact edits on bytes (E1, E3, E4), output for the model (E8), reading, listing, searching, and what they say when it goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import ToolFailed
from agents.messages import ToolCall, ToolResult
from agents.tools.arguments import schemas
from agents.tools.editing import replace_once
from agents.tools.searching import extended
from agents.tools.text import bounded, cleaned
from agents.tools.toolbox import Toolbox
from tests.agents.conftest import names


async def use(tools: Toolbox, name: str, **arguments: object) -> ToolResult:
    return await tools.call(ToolCall(id="c", name=name, arguments=msgspec.json.encode(arguments).decode()))


def edited(data: bytes, old: str, new: str) -> bytes:
    return replace_once(data, old, new).data


def refused(data: bytes, old: str, new: str) -> str:
    with pytest.raises(ToolFailed) as failed:
        replace_once(data, old, new)
    return str(failed.value)


FUNCTION = b"def f():\n    x = 1\n    return x\n"


def test_e1_more_than_one_match_is_refused_with_count_and_lines() -> None:
    assert "occurs 2 times, at lines 1, 5." in refused(FUNCTION + b"\n" + FUNCTION, FUNCTION.decode(), "pass\n")


def test_e1_overlapping_matches_are_counted() -> None:
    assert "occurs 3 times" in refused(b"aaaa", "aa", "b")


def test_e1_new_text_is_literal() -> None:
    new = r"\1 $& \g<0> \\ %s {}"
    assert edited(b"a = OLD\n", "OLD", new) == f"a = {new}\n".encode()
    assert edited(b"a = O.D*\n", "O.D*", "x") == b"a = x\n"
    assert "does not occur" in refused(b"a = OLD\n", "O.D", "x")


def test_e1_empty_and_equal_texts_are_refused() -> None:
    assert "empty" in refused(FUNCTION, "", "x")
    assert "the same" in refused(FUNCTION, "x", "x")
    assert "the same" in refused(FUNCTION, "x\n", "x\r\n")


def test_e1_other_white_space_is_no_match_but_the_place_is_named() -> None:
    assert "At line 2 it does but for white space" in refused(FUNCTION, "x = 1\nreturn x", "x")
    assert "is at 2, but what stands around it differs" in refused(FUNCTION, "    x = 1\n    return y", "x")
    assert "nor does its first line" in refused(FUNCTION, "something else", "x")


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"alpha\nbeta", "alpha", "gamma", b"gamma\nbeta"),
        (b"alpha\nbeta\n\n", "alpha", "gamma", b"gamma\nbeta\n\n"),
        (b"alpha\nbeta", "beta", "beta\ngamma", b"alpha\nbeta\ngamma"),
        (b"\xef\xbb\xbfx=1\n", "x=1", "x=2", b"\xef\xbb\xbfx=2\n"),
        (b"all:\n\tmake x\n", "make x", "make y", b"all:\n\tmake y\n"),
        (b"one  \ntwo  \n", "one", "1", b"1  \ntwo  \n"),
        (b"a\n\n\nb\n", "a\n\n\nb", "a\nb", b"a\nb\n"),
    ],
)
def test_e3_everything_around_the_edit_stays(data: bytes, old: str, new: str, after: bytes) -> None:
    assert edited(data, old, new) == after


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", b"a\r\nx\r\nb\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "b1\nb2", b"a\r\nb1\r\nb2\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "\nb", "\nx", b"a\r\nx\r\nc\r\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\nb\r\nc\n", "b\nc", "b\nd", b"a\nb\r\nd\n"),
        (b"a\nb\nc\r\n", "a\nb", "a\nx", b"a\nx\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"only", "only", "two\nlines", b"two\nlines"),
    ],
)
def test_e3_line_ends_stay_of_their_kind(data: bytes, old: str, new: str, after: bytes) -> None:
    assert edited(data, old, new) == after


@pytest.mark.parametrize(
    "data", [b"x=1 # caf\xe9\n", "x=1 # 中文\n".encode("gbk"), b"\x80x=1\n", "x=1 \ufffd\n".encode(), b"x=1\xff\xfe\r\n"]
)
def test_e4_bytes_that_are_no_utf8_survive(data: bytes) -> None:
    assert edited(data, "x=1", "x=2") == data.replace(b"x=1", b"x=2")


@given(
    st.binary(max_size=60),
    st.binary(max_size=60),
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12),
    st.text("abc\r\n", max_size=12),
)
def test_e4_an_edit_changes_its_match_and_nothing_else(before: bytes, after: bytes, old: str, new: str) -> None:
    data = before + old.encode() + after
    try:
        result = replace_once(data, old, new)
    except ToolFailed:
        return
    normal = old.replace("\r\n", "\n")
    if normal != old or "\n" in normal:
        assert len(result.data) >= len(before.rstrip(b"\r")) + len(after) - 1
        return
    at = data.index(old.encode())
    tail = len(data) - at - len(old.encode())
    assert result.data[:at] == data[:at]
    assert result.data[len(result.data) - tail :] == data[len(data) - tail :]


@given(st.lists(st.sampled_from([b"one", b"two", b"three", b""]), min_size=1, max_size=6), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_e3_there_and_back_again_gives_the_same_bytes(lines: list[bytes], end: bytes, last: bool) -> None:
    data = end.join([*lines, b"MARK", b"after"]) + (end if last else b"")
    there = edited(data, "MARK\nafter", "NEW\nTEXT\nafter")
    assert there.count(b"\n") == data.count(b"\n") + 1
    assert edited(there, "NEW\nTEXT\nafter", "MARK\nafter") == data


async def test_edit_writes_the_file_and_says_where(tools: Toolbox, root: Path) -> None:
    path = root / "a.py"
    path.write_bytes(b"one\ntwo\nthree\n")
    path.chmod(0o755)
    result = await use(tools, "edit", path="a.py", old="two", new="2\nzwei")
    assert (result.ok, result.text) == (True, "Edited a.py, now lines 2 to 3.")
    assert path.read_bytes() == b"one\n2\nzwei\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o755


async def test_a_refused_edit_leaves_the_file_alone(tools: Toolbox, root: Path) -> None:
    (root / "a.py").write_bytes(b"x\nx\n")
    result = await use(tools, "edit", path="a.py", old="x", new="y")
    assert (result.ok, result.text) == (False, "`old` occurs 2 times, at lines 1, 2. Quote more lines around the one you mean.")
    assert (root / "a.py").read_bytes() == b"x\nx\n"


async def test_e4_utf16_and_binary_files_are_refused(tools: Toolbox, root: Path) -> None:
    (root / "u.txt").write_bytes("x=1\n".encode("utf-16"))
    for name, arguments in (("read", {}), ("edit", {"old": "x", "new": "y"})):
        result = await use(tools, name, path="u.txt", **arguments)
        assert not result.ok
        assert "binary file" in result.text


async def test_read_numbers_lines_and_says_what_is_left(tools: Toolbox, root: Path) -> None:
    (root / "a.txt").write_bytes(b"".join(b"line %d\r\n" % number for number in range(1, 1001)))
    result = await use(tools, "read", path="a.txt", offset=10, limit=2)
    assert result.text == "    10\tline 10\n    11\tline 11\n[lines 10 to 11 of 1000; go on with offset 12]"
    assert "go on with offset 401" in (await use(tools, "read", path="a.txt")).text
    assert (await use(tools, "read", path="a.txt", offset=1000)).text == "  1000\tline 1000"
    assert "has 1000 lines" in (await use(tools, "read", path="a.txt", offset=1001)).text


async def test_read_bounds_long_lines_and_shows_odd_bytes(tools: Toolbox, root: Path) -> None:
    (root / "a.txt").write_bytes(b"\xef\xbb\xbfcaf\xe9 " + b"x" * 5_000)
    text = (await use(tools, "read", path="a.txt")).text
    assert text.startswith("     1\tcaf\\xe9 xxx")
    assert text.endswith("more characters]")
    assert len(text) < 2_100
    (root / "empty").touch()
    assert (await use(tools, "read", path="empty")).text == "The file is empty."


@pytest.mark.parametrize("name", ["read", "list", "edit", "write"])
async def test_paths_outside_are_refused(tools: Toolbox, root: Path, name: str) -> None:
    (root.parent / "secret").write_text("s")
    (root / "link").symlink_to(root.parent / "secret")
    more: dict[str, object] = {"edit": {"old": "s", "new": "t"}, "write": {"content": "t"}}.get(name, {})  # type: ignore[assignment]
    for path in ("../secret", str(root.parent / "secret"), "/etc/passwd", "link"):
        result = await use(tools, name, path=path, **more)
        assert not result.ok, (name, path)
    assert (root.parent / "secret").read_text() == "s"


async def test_missing_files_folders_and_huge_files_are_told(tools: Toolbox, root: Path) -> None:
    (root / "folder").mkdir()
    with (root / "huge").open("wb") as file:
        os.truncate(file.fileno(), 5 * 2**20)
    assert "There is no nothing.py" in (await use(tools, "read", path="nothing.py")).text
    assert "folder is a folder" in (await use(tools, "read", path="folder")).text
    assert "larger than 4 MiB" in (await use(tools, "read", path="huge")).text
    assert "There is no nowhere" in (await use(tools, "list", path="nowhere")).text


async def test_write_creates_folders_and_refuses_git(tools: Toolbox, root: Path) -> None:
    result = await use(tools, "write", path="a/b/c.txt", content="é\n")
    assert (result.ok, result.text) == (True, "Wrote a/b/c.txt: 3 bytes.")
    assert (root / "a/b/c.txt").read_bytes() == b"\xc3\xa9\n"
    assert not (await use(tools, "write", path=".git/config", content="x")).ok


async def test_list_shows_all_files_when_they_are_few_and_one_folder_when_they_are_many(tools: Toolbox, root: Path) -> None:
    assert (await use(tools, "list")).text == "The folder is empty."
    (root / "src").mkdir()
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_text("x")
    (root / "src/a.py").touch()
    (root / ".hidden").touch()
    assert (await use(tools, "list")).text == ".hidden\nsrc/a.py"
    for number in range(250):
        (root / f"src/{number:03}.py").touch()
    assert (await use(tools, "list")).text == ".hidden\nsrc/\n[more than 200 files beneath; list a folder to see its files]"


async def test_search_finds_lines_with_their_place(tools: Toolbox, root: Path) -> None:
    (root / "a.py").write_text("x = 1\ny = 22\n")
    (root / ".git").mkdir()
    (root / ".git/x").write_text("y = 22\n")
    (root / "b.bin").write_bytes(b"\0y = 22\n")
    assert (await use(tools, "search", pattern=r"y = \d+")).text == "./a.py:2:y = 22"
    assert (await use(tools, "search", pattern="nothing")).text == "No line matches."
    assert (await use(tools, "search", pattern="-x|x = 1", path="a.py")).text.endswith("1:x = 1")


async def test_search_says_what_is_wrong_with_a_pattern_or_a_path(tools: Toolbox, root: Path) -> None:
    (root / "a.py").write_text("x\n")
    for pattern, path in (("(", "."), ("x", "missing"), ("x", "../other"), ("x", "/etc"), ("a\nb", ".")):
        result = await use(tools, "search", pattern=pattern, path=path)
        assert not result.ok, (pattern, path)
        assert result.text


async def test_a_catastrophic_pattern_does_not_hang(tools: Toolbox, root: Path) -> None:
    (root / "a.txt").write_text("a" * 5_000 + "!\n")
    result = await use(tools, "search", pattern="(a+)+$")
    assert result.ok
    assert result.seconds is not None
    assert result.seconds < 5


async def test_search_bounds_what_it_shows(tools: Toolbox, root: Path) -> None:
    (root / "a.txt").write_text("x" * 1_000 + "\n" + "x\n" * 500)
    lines = (await use(tools, "search", pattern="x")).text.splitlines()
    assert len(lines) == 201
    assert len(lines[0]) == 301
    assert lines[-1].startswith("[… 301 more lines")


@pytest.mark.parametrize(
    ("pattern", "same"),
    [(r"\d+", "[0-9]+"), (r"[\d_]", "[0-9_]"), (r"\\d", r"\\d"), (r"\D", "[^0-9]"), (r"\bx\w*", r"\bx\w*"), ("[]a]\\d", "[]a][0-9]")],
)
def test_digits_are_translated_for_grep(pattern: str, same: str) -> None:
    assert extended(pattern) == same


async def test_run_shows_exit_code_and_output_of_both_streams(tools: Toolbox) -> None:
    result = await use(tools, "run", command="echo out; echo err >&2; exit 3")
    assert (result.ok, result.text) == (False, "exit code 3\nout\nerr")
    assert (await use(tools, "run", command="true")).text == "exit code 0, no output"
    assert (await use(tools, "run", command="kill -9 $$")).text.startswith("Ended by signal 9.")


async def test_run_says_that_its_time_is_out_and_what_came_before(tools: Toolbox) -> None:
    result = await use(tools, "run", command="echo begun; sleep 30", timeout_s=0.3)
    assert (result.ok, result.text) == (False, "Timed out after 0.3 s and was ended with all it had started. Output so far:\nbegun")


async def test_e8_the_end_of_a_long_output_is_kept_and_the_rest_counted(tools: Toolbox) -> None:
    text = (await use(tools, "run", command="seq 1 30000; echo ERROR: real cause; exit 1")).text
    assert text.startswith("exit code 1\n1\n2\n3\n")
    assert text.endswith("29999\n30000\nERROR: real cause")
    assert len(text) < 17_000
    middle = next(line for line in text.splitlines() if line.startswith("[…"))
    assert middle.endswith("bytes left out …]")


async def test_e8_twenty_megabytes_without_a_line_end(tools: Toolbox) -> None:
    text = (await use(tools, "run", command="head -c 20000000 /dev/zero | tr '\\0' x")).text
    assert len(text) < 17_000
    kept = text.count("x") - text.count("exit")
    assert f"[… {20_000_000 - kept:,} bytes left out …]" in text


def test_e8_progress_bars_escapes_and_invalid_bytes() -> None:
    assert cleaned(b"".join(b"\r%d%%" % n for n in range(101)) + b"\nend\n") == "100%\nend\n"
    assert cleaned(b"a\r\nb\r\n") == "a\nb\n"
    assert cleaned(b"\x1b[2J\x1b[?1049h\x1b]0;title\x07\x1b[1;31mred\x1b[0m\x1b(B\x1b=") == "red"
    assert cleaned(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "link"
    assert cleaned(b"ok\x00\x07\x08\xff\n") == "ok\ufffd\n"
    assert cleaned("left\u202eright".encode()) == "leftright"
    assert cleaned(b"tab\tstays\n") == "tab\tstays\n"


@given(st.binary(max_size=400))
def test_e8_no_bytes_get_an_escape_through(data: bytes) -> None:
    text = cleaned(data)
    assert not any(ord(character) < 32 and character not in "\t\n" for character in text)


@given(st.text(max_size=200), st.integers(10, 100), st.integers(0, 5))
def test_e8_what_is_bounded_is_bounded(text: str, limit: int, dropped: int) -> None:
    shown = bounded(text, limit_characters=limit, dropped_bytes=dropped)
    assert len(shown) <= max(limit + 60, len(text) if not dropped and len(text) <= limit else 0)
    if not dropped and len(text) <= limit:
        assert shown == text


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read", "", "path: Field required"),
        ("read", "[]", "must be a JSON object"),
        ("read", '{"path": "a", "offset": 0}', "offset: Input should be greater than or equal to 1"),
        ("read", '{"path": "a\\u0000b"}', "must not hold a NUL"),
        ("run", '{"command": "x", "timeout_s": 10000}', "less than or equal to 600"),
        ("edit", '{"path": "a", "old": "x"}', "new: Field required"),
        ("write", '{"path": "a", "content": "\\ud800"}', "not valid JSON"),
        ("shell", "{}", "There is no tool 'shell'"),
    ],
)
async def test_s01_wrong_arguments_run_nothing_and_say_what_is_wrong(
    tools: Toolbox, root: Path, name: str, arguments: str, says: str
) -> None:
    result = await tools.call(ToolCall(id="c", name=name, arguments=arguments))
    assert not result.ok
    assert says in result.text
    assert names(root) == []


DEEP = '{"path":' + "[" * 100_000


async def test_s01_arguments_nested_too_deeply_are_an_error_for_the_model(tools: Toolbox) -> None:
    for name in ("write", "note", "submit", "nothing"):
        call = ToolCall(id="a", name=name, arguments=DEEP)
        result = await tools.call(call)
        assert not result.ok
        assert len(result.text) < 2_000
        assert tools.summary(call).startswith(f"{name} ")


async def test_s01_what_is_wrong_with_many_arguments_is_told_in_short(tools: Toolbox) -> None:
    arguments = json.dumps({f"{n}" * 200: n for n in range(5_000)})
    result = await tools.call(ToolCall(id="a", name="write", arguments=arguments))
    assert not result.ok
    assert len(result.text) < 3_000


def test_the_schemas_are_the_contract() -> None:
    assert {schema.name: sorted(msgspec.json.decode(schema.parameters)["properties"]) for schema in schemas()} == {
        "read": ["limit", "offset", "path"],
        "list": ["path"],
        "search": ["path", "pattern"],
        "edit": ["new", "old", "path"],
        "write": ["content", "path"],
        "run": ["command", "timeout_s"],
        "note": ["text"],
        "submit": ["summary"],
    }
    for schema in schemas():
        parameters = msgspec.json.decode(schema.parameters)
        assert parameters["additionalProperties"] is False
        assert "title" not in msgspec.json.encode(parameters).decode()
        assert schema.description


def test_the_schemas_are_the_same_bytes_in_every_process(tools: Toolbox) -> None:
    import sys

    program = "from agents.tools.arguments import schemas; import msgspec; print(msgspec.json.encode(schemas()).decode())"
    done = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert done[0] == done[1]
    assert done[0].encode().strip() == msgspec.json.encode(tools.schemas)


def test_summaries_are_one_short_line(tools: Toolbox) -> None:
    def summary(name: str, arguments: str) -> str:
        return tools.summary(ToolCall(id="c", name=name, arguments=arguments))

    assert summary("edit", '{"path": "src/a.py", "old": "x", "new": "y"}') == "edit src/a.py"
    assert summary("run", '{"command": "make\\n  test"}') == "run make test"
    assert summary("search", '{"pattern": "def f"}') == "search def f in ."
    assert summary("run", '{"command": "ls') == 'run {"command": "ls'
    assert len(summary("run", msgspec.json.encode({"command": "x" * 500}).decode())) == 80

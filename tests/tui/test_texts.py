# ruff: noqa: RUF001 (minus signs and dashes are what people shall see)
"""The pure documents: columns, header, trajectory, detail, change."""

import msgspec
import pytest

from agents.messages import Assistant, ToolCall, ToolResult
from orchestrator.views import CheckView, DiffDocument, Failure, FileView, HunkView, LogDocument
from tests.tui.conftest import BASE, FAILED, PASSED, SNAPSHOT, busy_station, engine, row, to_review
from tui.columns import now_cell, place, row_line, title_line
from tui.filters import ascii_of
from tui.header import banner_lines, header_lines
from tui.line import text_of, width_of
from tui.marks import MARKS, state_mark, state_word
from tui.review_lines import FILE_LINES, build, file_lines, verdict_lines
from tui.state import Model, Seen, fold, lose
from tui.task_lines import detail_lines, fact_lines
from tui.trajectory_lines import Unreadable, read_log, trajectory_lines


def texts(lines):
    return [text_of(spans) for spans in lines]


def flat(lines):
    return "\n".join(texts(lines))


@pytest.mark.parametrize("width", [58, 60, 79, 80, 89, 90, 103, 104, 115, 116, 120, 160, 200, 400])
def test_columns_fill_the_width_exactly(width):
    placed = place(width)
    seen = Seen(
        row=row("a" * 90, "running", activity="waiting-engine", title="漢字" * 40, last_tool="run x" * 30, output_tokens=10**9),
        at=0.0,
        place=0,
    )
    assert width_of(title_line(placed)) == width
    assert width_of(row_line(seen, placed, 1.0, chosen=True)) == width


def test_every_state_has_a_mark_and_a_word_and_no_two_look_alike():
    looks = {(state_mark(row("a", state)), state_word(row("a", state))) for state in MARKS}
    assert len(looks) == len(MARKS)
    words = {state_word(row("a", "running", activity=activity)) for activity in ("model", "tool", "waiting-engine", "checks")}
    assert words == {"model", "tool", "wait: engine", "checks"}


def test_the_last_tools_place_says_what_matters_in_the_state():
    assert now_cell(row("a", "queued", waiting_for="room in the engine")) == ("room in the engine", "dim")
    assert now_cell(row("a", "running", last_tool="✗ edit shop.py")) == ("✗ edit shop.py", "warn")
    assert now_cell(row("a", "failed", failure=Failure(kind="limit", message="60 steps"))) == ("limit: 60 steps", "bad")
    assert now_cell(row("a", "verified", checks=PASSED)) == ("✓ 1 check", "good")
    assert now_cell(row("a", "in-review", checks=PASSED, approved=True)) == ("approved, ✓ 1 check", "good")
    assert now_cell(row("a", "verified", checks=FAILED)) == ("✗ 1 of 1 check failed", "bad")
    assert now_cell(row("a", "verified")) == ("no checks", "dim")


def test_header_says_unknown_before_anything_is_known():
    for tall in (False, True):
        shown = flat(header_lines(Model(), 5.0, width=120, tall=tall))
        assert "unknown" in shown
        assert "0" not in shown


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("tall", [False, True])
def test_a_simulated_engine_is_named_as_such_at_every_width(width, tall):
    model = fold(Model(), busy_station().snapshot(), 0.0)
    lines = header_lines(model, 0.0, width=width, tall=tall, only="all")
    assert "SIMULATED" in flat(lines) or (tall and width < 96)
    assert all(width_of(spans) <= width for spans in lines)


def test_header_holds_all_its_numbers_at_80_columns():
    model = fold(Model(), busy_station().snapshot(), 0.0)
    shown = flat(header_lines(model, 0.0, width=80, tall=False, only="all"))
    for part in (
        "1184 tok/s",
        "engine ok",
        "9 run",
        "2 wait",
        "KV 37 %",
        "1 waiting 12",
        "2 working 9/9",
        "3 to review 8",
        "4 failed 1",
        "5 done 2",
        "unattr. 0",
    ):
        assert part in shown, part
    assert "…" not in shown


def test_stale_numbers_say_their_age():
    model = fold(Model(), busy_station().snapshot(), 0.0)
    assert "old" not in flat(header_lines(model, 2.0, width=120, tall=False))
    assert "7s old" in flat(header_lines(model, 7.0, width=120, tall=False))
    assert "1m05 old" in flat(header_lines(model, 65.0, width=120, tall=True))


def test_an_engine_that_was_not_heard_of_for_long_says_so_although_the_station_answers():
    station = busy_station()
    station.engine = engine(age_s=21.0)
    assert "21s old" in flat(header_lines(fold(Model(), station.snapshot(), 0.0), 0.0, width=120, tall=True))


def test_a_sick_engine_says_what_is_wrong():
    station = busy_station()
    station.engine = engine(healthy=False, message="connection refused", running=None, waiting=None, kv_cache_usage=None)
    shown = flat(header_lines(fold(Model(), station.snapshot(), 0.0), 0.0, width=160, tall=False))
    assert "✘ engine: connection refused" in shown
    assert "– running  – waiting  KV –" in shown


def test_banner_has_the_stations_warning_and_its_silence():
    station = busy_station()
    model = fold(Model(), station.snapshot(), 0.0)
    assert banner_lines(model) == []
    model = lose(model, "gone", now=1.0, clock=0.0)
    assert "station not answering since " in flat(banner_lines(model))


def test_folding_keeps_head_and_tail_and_counts_the_rest():
    result = ToolResult(call_id="c", name="run", text="\n".join(f"line {i}" for i in range(40)), ok=False, seconds=1.0)
    shown = texts(trajectory_lines([result]))
    assert len(shown) == 10
    assert shown[1].strip() == "line 0"
    assert shown[5].strip() == "⋯ 32 lines folded (z)"
    assert shown[-1].strip() == "line 39"
    assert len(trajectory_lines([result], unfolded=True)) == 41


def test_arguments_that_are_no_json_are_shown_as_they_are():
    reply = Assistant(text="", tool_calls=(ToolCall(id="c", name="run", arguments='{"cmd": "ls'),), finish_reason="length")
    shown = flat(trajectory_lines([reply]))
    assert '▸ run {"cmd": "ls' in shown
    assert "ended by length" in shown


@pytest.mark.parametrize("depth", [100, 500, 900, 990, 100_000])
def test_arguments_nested_deeply_are_shown_in_some_way(depth: int):
    for arguments in ('{"path":' + "[" * depth, '{"path":' + "[" * depth + "]" * depth + "}"):
        reply = Assistant(text="", tool_calls=(ToolCall(id="c", name="run", arguments=arguments),), finish_reason="stop")
        assert "▸ run" in flat(trajectory_lines([reply]))


def test_an_unreadable_entry_keeps_its_place():
    raw = [
        msgspec.Raw(b'{"role":"user","text":"a"}'),
        msgspec.Raw(b'{"role":"martian"}'),
        msgspec.Raw(b"{torn"),
        msgspec.Raw(b'{"role":"user","text":"b"}'),
    ]
    entries = read_log(LogDocument(task="a", attempt=1, messages=raw))
    assert [isinstance(entry, Unreadable) for entry in entries] == [False, True, True, False]
    assert "unreadable entry" in flat(trajectory_lines(entries))


def test_a_long_trajectory_shows_its_end_with_the_right_step_numbers():
    entries = [Assistant(text=f"reply {i}", finish_reason="stop") for i in range(1, 701)]
    shown = texts(trajectory_lines(entries))
    assert shown[0].startswith("… 100 earlier messages")
    assert "step 101" in shown
    assert "step 700" in shown


def test_detail_of_a_task_that_never_began():
    station = busy_station()
    detail = station.task("queued-01")
    shown = flat(detail_lines(detail, None, unfolded=False))
    assert "waits for money-rounding to be merged" in shown
    assert "trajectory  none yet" in shown


def test_detail_shows_failure_attempts_and_live_text():
    station = busy_station()
    assert "✘ checks: 1 of 1 checks failed twice" in flat(fact_lines(station.task("leap-years").row))
    assert "  2 submitted, 8 steps, checks:" in flat(detail_lines(station.task("leap-years"), [], unfolded=False))
    assert "and run the test ag" in flat(detail_lines(station.task("money-rounding"), [], unfolded=False))


def document(*files, **fields):
    known = {"task": "a", "base_commit": BASE, "snapshot_commit": SNAPSHOT, "target": "main", "target_moved": False, "conflicts": []}
    return DiffDocument(**{**known, **fields}, files=list(files))


def changed_file(*lines, **fields):
    known = {
        "path": "a.py", "old_path": None, "status": "modified", "old_mode": None, "new_mode": None, "binary": False, "insertions": 1, "deletions": 1,
        "hunks": [HunkView(id="1", header="@@ -10,2 +20,2 @@ def f():", lines=list(lines))],
    }  # fmt: skip
    return FileView(**{**known, **fields})


def test_hunks_number_old_and_new_lines():
    shown = texts(file_lines(changed_file(" same", "-old", "+new", "\\ No newline at end of file")))
    assert shown[1].strip() == "@@ -10,2 +20,2 @@ def f():"
    assert [text.split() for text in shown[2:5]] == [["10", "20", "same"], ["11", "-", "old"], ["21", "+", "new"]]
    assert shown[5].strip() == "No newline at end of file"


def test_a_diff_line_of_five_megabytes_is_cut_with_a_note():
    built = build(document(changed_file("+" + "x" * 5_000_000)), None)
    assert max(len(text) for text in texts(built.lines)) < 1_200
    assert "4,999,000 characters more" in flat(built.lines)


def test_a_diff_of_many_lines_is_cut_with_a_note():
    built = build(document(changed_file(*["+x"] * 9_000)), None)
    assert len(built.lines) < FILE_LINES + 5
    assert "too long for the screen" in flat(built.lines)


def test_mode_changes_renames_binaries_and_notes_are_told():
    shown = flat(
        file_lines(
            changed_file(old_path="b.py", status="renamed", old_mode="100644", new_mode="100755", binary=True, note="an LFS pointer")
        )
    )
    for part in ("R b.py → a.py", "mode 100644 → 100755", "binary, not shown", "an LFS pointer"):
        assert part in shown


def test_what_stands_in_the_way_is_said_on_top():
    shown = flat(verdict_lines(document(conflicts=["shop/money.py"], target_moved=True)))
    assert "conflicts with main in shop/money.py" in shown
    assert "main has moved" in shown
    (moved,) = verdict_lines(document(target_moved=True))
    assert {span.role for span in moved} == {"dim"}, "what merges cleanly is no warning"
    assert "no branch to land on" in flat(verdict_lines(document(target=None)))
    assert verdict_lines(document()) == []


def test_sections_point_at_the_titles_of_their_files():
    station = busy_station()
    station.put(to_review("a"))
    built = build(station.diff("a"), station.task("a"))
    assert [text_of(built.lines[section.at])[2:].split("  ")[0] for section in built.sections[1:]] == [
        "shop/money.py",
        "tests/test_money.py",
        "docs/rounding.png",
    ]


def test_checks_that_have_not_run_have_not_failed():
    def label(*checks):
        known = busy_station().task("leap-years")
        return text_of(build(None, msgspec.structs.replace(known, row=row("a", "running", checks=list(checks)))).sections[0].label)

    unrun, late = CheckView(command="b", exit_code=None, seconds=None), CheckView(command="c", exit_code=None, seconds=600.0)
    assert label(unrun) == "checks, notes  not run yet"
    assert label(*PASSED, unrun) == "checks, notes  1 not run yet"
    assert label(*FAILED, unrun) == "checks, notes  ✗ 1 of 2"
    assert label(late) == "checks, notes  ✗ 1 of 1"
    assert label(*PASSED) == "checks, notes  ✓ 1"


def test_in_ascii_no_two_states_look_alike_and_none_is_a_question():
    looks = {state: ascii_of(mark) for state, (mark, _) in MARKS.items()}
    assert "?" not in looks.values()
    apart = {look: {MARKS[state][0] for state in looks if looks[state] == look} for look in looks.values()}
    assert all(len(marks) == 1 for marks in apart.values()), apart
    assert ascii_of("±") != ascii_of("…")

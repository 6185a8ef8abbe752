"""Field case T1: whatever a task, a model or a file is called, it shows as it is written and does nothing else."""

import asyncio

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.messages import Assistant, System, ToolCall, ToolResult, User
from orchestrator.errors import UserError
from orchestrator.views import CheckOutput, CheckView, Failure, FileView, HunkView
from tests.tui.conftest import SNAPSHOT, engine, row
from tests.tui.test_journeys import dashboard, screen_text, told, until
from tui.fake import FakeStation, FakeTask
from tui.screens.dialogs import CommentDialog, ConfirmDialog
from tui.screens.fleet import FleetScreen
from tui.screens.review import ReviewScreen
from tui.screens.task import TaskScreen

TRICKS = [
    "[/bold]",
    "x[/]",
    "[/usr/bin]",
    "[link=http://e]a[/link]",
    "[@click=app.leave]b[/]",
    "[",
    "$primary",
    "\x1b[2J\x1b]0;title\x07",
    "a\u202eb",
    "\ud800",
    "漢字👩‍👩‍👧 e\u0301",
]


def hostile(text):
    """A station in which every text that comes from outside is `text`."""
    station = FakeStation(engine=engine(model=text, message=text, healthy=False), warning=text)
    failure = Failure(kind="checks", message=text)
    known = row(
        f"task {text}", "in-review", title=text, waiting_for=text, agent=text, workspace=text, branch=text, last_tool=text, failure=failure,
        checks=[CheckView(command=text, exit_code=1, seconds=1.0)], snapshot_commit=SNAPSHOT,
    )  # fmt: skip
    hunk = HunkView(id="1", header=f"@@ -1 +1 @@ {text}", lines=[f" {text}", f"-{text}", f"+{text}"])
    changed = FileView(
        path=text or "x", old_path=f"old {text}", status="renamed", old_mode="100644", new_mode="100755", binary=False, insertions=1, deletions=1, hunks=[hunk], note=text,
    )  # fmt: skip
    messages = [
        System(text=text),
        User(text=text),
        Assistant(
            text=text,
            reasoning=text,
            tool_calls=(ToolCall(id="1", name=text, arguments=text), ToolCall(id="2", name="run", arguments=arguments(text))),
            finish_reason=text,
        ),
        ToolResult(call_id="1", name=text, text=text, ok=False),
    ]
    station.put(
        FakeTask(
            row=known,
            prompt=text,
            messages=[message for message in messages if is_writable(message)],
            checks=[CheckOutput(command=text, exit_code=1, seconds=0.1, output=text)],
            files=[changed],
            notes=[text],
            comments=[text],
            conflicts=[text],
            live_text=text,
        )
    )
    return station, known.id


def arguments(text):
    return msgspec.json.encode({"command": text, "path": f"{text}\n{text}"}).decode() if is_writable(text) else "{}"


def is_writable(value):
    """A lone surrogate cannot stand in a trajectory file at all."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return True


async def visit_every_screen(text, size=(200, 50)):
    station, task = hostile(text)

    def refuse(*_args):
        raise UserError(text, hint=text)

    station.approve = refuse
    async with dashboard(station, size=size) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        await pilot.pause()
        seen = [screen_text(app)]
        app.screen.action_open_task()
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and len(app.screen.pane.pager.lines) > 8)
        app.screen.action_toggle_folds()
        await pilot.pause()
        seen.append(screen_text(app))
        app.screen.action_review()
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and len(app.screen.sections.sections) == 2)
        await pilot.pause()
        seen.append(screen_text(app))
        review = app.screen
        review.action_approve()
        await until(pilot, lambda: told(app))
        review.action_reject()
        await until(pilot, lambda: isinstance(app.screen, CommentDialog))
        await pilot.pause()
        seen.append(screen_text(app))
        app.screen.dismiss(None)
        await until(pilot, lambda: app.screen is review)
        review.action_cancel_task()
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.pause()
        seen.append(screen_text(app))
        assert app.model.row(task) is not None
        assert app.is_running
    assert app.return_code in {0, None}
    return seen


@pytest.mark.parametrize("text", TRICKS[:6])
async def test_t1_brackets_show_as_they_are_written_on_every_screen(text):
    for screen in await visit_every_screen(text):
        assert text in screen


@pytest.mark.parametrize("text", TRICKS[6:])
async def test_t1_what_a_terminal_would_obey_is_shown_and_not_sent(text):
    for screen in await visit_every_screen(text):
        assert not {"\x1b", "\x07", "\u202e", "\ud800", "\u200d"} & set(screen)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(st.sampled_from("[]/=@#'\"\\ \n\tab$(){}:\x1b\u202e漢"), max_size=40))
def test_t1_no_text_of_any_kind_breaks_a_screen(text):
    asyncio.run(visit_every_screen(text, size=(100, 30)))


async def test_a_title_of_five_megabytes_is_only_a_cut_title():
    screens = await visit_every_screen("long" * 1_250_000)
    assert all("long" in screen for screen in screens)

"""Field case T1: whatever a task, a model or a file is called, it shows as it is written and does nothing else."""

import asyncio

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from textual.widgets._toast import Toast

from agents.messages import Assistant, System, ToolCall, ToolResult, User
from orchestrator.errors import UserError
from orchestrator.views import CheckOutput, CheckView, Failure, FileView, HunkView
from tests.tui.conftest import SNAPSHOT, engine, row
from tests.tui.test_journeys import dashboard, screen_text, until
from tui.fake import FakeStation, FakeTask
from tui.screens.dialogs import CommentDialog, ConfirmDialog
from tui.screens.review import ReviewScreen

BRACKETS = ["[/bold]", "x[/] [/usr/bin] [link=http://e]a[/link] [@click=app.leave]b[/] ["]
OBEYED = ["$primary \x1b[2J\x1b]0;title\x07 a\u202eb 漢字\U0001f469\u200d\U0001f467 e\u0301", "\ud800 \x9b2J"]


def hostile(texts):
    """A station in which every text that comes from outside is one of `texts`, a task for each."""
    station = FakeStation(engine=engine(model=texts[0], message=texts[0], healthy=False), warning=texts[0])
    for i, text in enumerate(texts):
        station.put(hostile_task(f"{i} {text}", text))
    return station


def hostile_task(name, text):
    failure = Failure(kind="checks", message=text)
    known = row(
        name, "in-review", title=text, waiting_for=text, agent=text, workspace=text, branch=text, last_tool=text, failure=failure,
        checks=[CheckView(command=text, exit_code=1, seconds=1.0)], snapshot_commit=SNAPSHOT,
    )  # fmt: skip
    hunk = HunkView(id="1", header=f"@@ -1 +1 @@ {text}", lines=[f" {text}", f"-{text}", f"+{text}"])
    changed = FileView(
        path=text or "x", old_path=f"old {text}", status="renamed", old_mode="100644", new_mode="100755", binary=False, insertions=1, deletions=1, hunks=[hunk], note=text,
    )  # fmt: skip
    calls = (ToolCall(id="1", name=text, arguments=text), ToolCall(id="2", name="run", arguments=arguments(text)))
    messages = [
        System(text=text),
        User(text=text),
        Assistant(text=text, reasoning=text, tool_calls=calls, finish_reason=text),
        ToolResult(call_id="1", name=text, text=text, ok=False),
    ]
    return FakeTask(
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


def arguments(text):
    return msgspec.json.encode({"command": text, "path": f"{text}\n{text}"}).decode() if is_writable(text) else "{}"


def is_writable(value):
    """A lone surrogate cannot stand in a trajectory file at all."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return True


async def visit_every_screen(*texts):
    """What fleet with task pane, review and both dialogs show, one after the other, for each of the texts."""
    station = hostile(texts)
    seen = []
    async with dashboard(station, size=(160, 40)) as (app, pilot):
        for i, text in enumerate(texts):
            seen += await visit(app, pilot, station, f"{i} {text}", text)
        assert app.is_running
    assert app.return_code in {0, None}
    return seen


async def visit(app, pilot, station, task, text):
    def refuse(*_args):
        raise UserError(text, hint=text)

    station.approve = refuse
    fleet = app.screen
    fleet.tasks.go_to(task)
    await until(pilot, lambda: len(fleet.pane.pager.lines) > 8)
    fleet.action_toggle_folds()
    seen = [await settled(app, pilot)]
    fleet.action_review()
    await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and len(app.screen.sections.sections) == 2)
    seen.append(await settled(app, pilot))
    review, before = app.screen, [notification.identity for notification in app._notifications]
    review.action_approve()
    await until(pilot, lambda: [known for known in app._notifications if known.identity not in before])
    await until(pilot, lambda: review.query(Toast))
    seen.append(await settled(app, pilot))
    dialogs = (
        ("in-review", review.action_reject, CommentDialog, None),
        ("queued", review.action_cancel_task, ConfirmDialog, False),
    )
    for state, ask, dialog, answer in dialogs:
        station.change(task, state=state)
        await until(pilot, lambda state=state: app.model.row(task).state == review.model.row(task).state == state)
        ask()
        await until(pilot, lambda dialog=dialog: isinstance(app.screen, dialog))
        seen.append(await settled(app, pilot))
        app.screen.dismiss(answer)
        await until(pilot, lambda: app.screen is review)
    app.action_go_back()
    await until(pilot, lambda: app.screen is fleet)
    return seen


async def settled(app, pilot):
    await pilot.pause(0)
    return screen_text(app)


@pytest.mark.parametrize("text", BRACKETS)
async def test_t1_brackets_show_as_they_are_written_on_every_screen(text):
    for screen in await visit_every_screen(text):
        assert text in screen


async def test_t1_what_a_terminal_would_obey_is_shown_and_not_sent():
    for screen in await visit_every_screen(*OBEYED):
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\ud800", "\u200d"} & set(screen)


@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(st.text(st.sampled_from("[]/=@#'\"\\ \n\tab$(){}:\x1b\u202e漢"), max_size=60), min_size=3, max_size=3))
def test_t1_no_text_of_any_kind_breaks_a_screen(texts):
    asyncio.run(visit_every_screen(*texts))


async def test_a_title_of_five_megabytes_is_only_a_cut_title():
    assert all("long" in screen for screen in await visit_every_screen("long" * 1_250_000))

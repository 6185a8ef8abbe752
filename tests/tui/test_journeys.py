"""What a person does at the screen, against the shipped fake station."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from textual import events
from textual.widgets import Input, TextArea
from textual.widgets._footer import FooterKey
from textual.widgets._toast import Toast

from orchestrator.views import CheckView
from tests.tui.conftest import CHECK, FAILED, SNAPSHOT, busy_station, row, to_review
from tui.app import Dashboard
from tui.desk import DetailArrived, DiffArrived
from tui.fake import FakeStation, FakeTask
from tui.line import text_of
from tui.screens.dialogs import CommentDialog, ConfirmDialog
from tui.screens.fleet import FleetScreen
from tui.screens.help import HelpScreen
from tui.screens.review import ReviewScreen
from tui.screens.task import TaskScreen
from tui.widgets.fleet import FleetList
from tui.widgets.header import Banner
from tui.widgets.pager import Pager

pytestmark = pytest.mark.slow

LIMIT_S = 10.0
UNRUN = [CheckView(command=CHECK, exit_code=None, seconds=None)]


@asynccontextmanager
async def dashboard(station, *, size=(120, 40), **options):
    app = Dashboard(station, poll_s=0.1, back_off_s=(0.1,), ascii_only=False, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.model.received_at is not None and isinstance(app.screen, FleetScreen | TaskScreen | ReviewScreen))
        await until(pilot, lambda: app.model.tasks == {} or any(isinstance(s, FleetScreen) and s.tasks.ids for s in app.screen_stack))
        yield app, pilot


async def press(pilot, *keys):
    """Press keys, each once the one before has gone from the app to the widget and back.

    `pilot.press` waits twice per key until the processor has been idle for a while.
    """
    for key in keys:
        name, character = ("space", " ") if key == " " else (key, key if len(key) == 1 else None)
        pilot.app.post_message(events.Key(name, character))
        for _ in range(3):
            await pilot._wait_for_screen()
    await pilot.pause(0)


async def until(pilot, condition):
    """Let the app work until something holds; fails after a while."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await pilot.pause(0.005)


def told(app):
    return [notification.message for notification in app._notifications]


def keys_offered(app):
    """The keys that stand at the bottom."""
    return [hint.key_display for hint in app.screen.query(FooterKey) if hint.display]


def shown(app):
    """All the text of the document on the screen."""
    return "\n".join(text_of(spans) for spans in app.screen.query_one(Pager).lines)


def screen_text(app):
    """The whole screen as characters."""
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


async def test_watch_open_and_reject_with_a_comment():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        fleet = app.screen.query_one(FleetList)
        assert fleet.chosen == "leap-years"
        await press(pilot, "j", "enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and "step 3" in shown(app))
        assert "writing now" in shown(app)
        await press(pilot, "q")
        assert isinstance(app.screen, FleetScreen)

        station.put(to_review("money-rounding", title="Round half to even"))
        await until(pilot, lambda: app.model.row("money-rounding").state == "in-review")
        await press(pilot, "v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and "ROUND_FLOOR" in shown(app))
        await press(pilot, "x")
        await until(pilot, lambda: isinstance(app.screen, CommentDialog))
        await press(pilot, *"keep the old sign", "ctrl+j", *"please", "enter")
        await until(pilot, lambda: any("goes back to the agent" in message for message in told(app)))
        assert station.calls == [("reject", "money-rounding", "keep the old sign\nplease")]
        await until(pilot, lambda: app.model.row("money-rounding").state == "queued")
        assert isinstance(app.screen, ReviewScreen)


async def test_approve_then_merge_then_the_next():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        await press(pilot, "3", "v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and "Ran 4 tests" in shown(app))
        assert app.screen.selected == "split-cents"
        await press(pilot, "a")
        await until(pilot, lambda: "split-cents approved; m merges it" in told(app))
        await press(pilot, "m")
        await until(pilot, lambda: any(message.startswith("split-cents merged into main as c0ffee") for message in told(app)))
        await until(pilot, lambda: app.model.row("split-cents").state == "merged")
        await press(pilot, "n")
        assert app.screen.selected == "invoice-0398"
        await press(pilot, "p")
        assert app.screen.selected == "tax-rounding"
        await press(pilot, "q")
        assert isinstance(app.screen, FleetScreen)
        assert app.screen.selected == "tax-rounding"
        assert station.calls == [("approve", "split-cents"), ("merge", "split-cents")]


async def test_a_merge_that_conflicts_says_so_on_top_and_in_the_answer():
    station = busy_station()
    clash = to_review("clash")
    clash.conflicts, clash.target_moved = ["shop/money.py"], True
    station.put(clash)
    async with dashboard(station, task="clash") as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and "ROUND_FLOOR" in shown(app))
        await until(pilot, lambda: "conflicts with main in shop/money.py" in screen_text(app) and "main has moved" in screen_text(app))
        await press(pilot, "m")
        await until(pilot, lambda: "task clash is not approved; look at the diff, then a" in told(app))
        await press(pilot, "a", "m")
        await until(pilot, lambda: "clash not merged: conflicts with main: nothing was changed (shop/money.py)" in told(app))
        await until(pilot, lambda: app.model.row("clash").state == "conflicted")


async def test_a_key_that_cannot_act_says_why_and_asks_for_nothing():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        assert keys_offered(app) == ["enter", "v", "!", "/", "q", "?", "o", "r"]
        for key, why in (
            ("c", "cancel: leap-years is failed, nothing is at work"),
            ("s", "say: leap-years is failed, nobody hears it; r retries with a comment"),
            ("a", "approve: leap-years is failed"),
        ):
            await press(pilot, key)
            await until(pilot, lambda why=why: told(app) == [why])
            assert isinstance(app.screen, FleetScreen)
        await press(pilot, "3", "m")
        await until(pilot, lambda: told(app) == ["merge: look at split-cents first, with v"])
        await press(pilot, "2", "g", "r")
        await until(pilot, lambda: told(app) == ["retry: money-rounding is running; c cancels it first"])
        assert keys_offered(app)[-2:] == ["c", "s"]
        await press(pilot, "v", "a")
        await until(pilot, lambda: told(app) == ["approve: money-rounding is running"])
        assert station.calls == []


async def test_a_new_attempt_without_a_change_says_so_calmly():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        await press(pilot, "1", "v")
        await until(pilot, lambda: "no change to see: it waits for its turn" in screen_text(app))
        station.put(to_review("again", checks=FAILED))
        await until(pilot, lambda: app.model.row("again"))
        await press(pilot, "q", "0", "3", "G", "v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and "ROUND_FLOOR" in shown(app))
        assert app.screen.selected == "again"
        known = station.task("again")
        fresh = FakeTask(row=replace(known.row, state="running", attempt=2, snapshot_commit=None, checks=UNRUN), prompt=known.prompt)
        station.put(fresh)
        await until(pilot, lambda: "attempt 2 has begun and changed nothing yet" in screen_text(app))
        await until(pilot, lambda: "not run yet" in screen_text(app))
        assert "ROUND_FLOOR" not in shown(app)
        assert "✗" not in screen_text(app)
        assert "✘" not in screen_text(app)
        station.change("again", snapshot_commit=SNAPSHOT)
        await until(pilot, lambda: "attempt 2 is at work: this is its change so far" in screen_text(app))


async def test_q_goes_back_to_where_one_was():
    async with dashboard(busy_station()) as (app, pilot):
        await press(pilot, "3", "v", "t")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and "step 3" in shown(app))
        await press(pilot, "q")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and "ROUND_FLOOR" in shown(app))
        await press(pilot, "t", "v", "t", "v")
        assert isinstance(app.screen, ReviewScreen)
        await press(pilot, "q")
        assert isinstance(app.screen, FleetScreen)
        await press(pilot, "enter", "v", "t", "q")
        assert isinstance(app.screen, FleetScreen)
        await press(pilot, "ctrl+c")
        await until(pilot, lambda: told(app) == ["q leaves: the agents go on"])


async def test_what_came_while_another_screen_was_up_is_asked_for_again():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        station.hold()
        await press(pilot, "3", "enter", "v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        station.release()
        await until(pilot, lambda: "ROUND_FLOOR" in shown(app))
        await press(pilot, "q")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and "step 3" in shown(app))


async def test_after_a_merge_the_review_says_so_and_warns_of_nothing():
    station = busy_station()
    landed = to_review("landed")
    landed.target_moved = True
    station.put(landed)
    async with dashboard(station, task="landed") as (app, pilot):
        await until(pilot, lambda: "main has moved since the base commit 4f1c0a9d2b6e, no conflicts known" in screen_text(app))
        assert "⚠" not in screen_text(app)
        await press(pilot, "a", "m")
        await until(pilot, lambda: "✔ merged into main as c0ffeec0ffee" in screen_text(app))
        assert "m merges it" not in shown(app)
        assert "has moved" not in screen_text(app)


async def test_leaving_a_demo_at_work_is_asked_once():
    async with dashboard(busy_station(), ends_station=True) as (app, pilot):
        await press(pilot, "q")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        assert "Leaving ends the demo; 9 agents are still at work, 12 tasks wait." in screen_text(app)
        await press(pilot, "n", "question_mark")
        await until(pilot, lambda: "leave, the demo ends" in screen_text(app))
        await press(pilot, "q", "q", "y")
        await until(pilot, lambda: not app.is_running)


async def test_a_demo_that_is_done_is_left_at_once():
    station = FakeStation()
    station.put(to_review("a"))
    app = Dashboard(station, ends_station=True)
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.tasks.ids)
        await press(pilot, "q")
    assert app.return_code == 0


async def test_a_newer_notification_replaces_the_older_in_one_row_above_the_keys():
    async with dashboard(busy_station(), size=(80, 24)) as (app, pilot):
        await press(pilot, "3", "v", "a")
        await until(pilot, lambda: "split-cents approved; m merges it" in told(app))
        await press(pilot, "m")
        await until(pilot, lambda: [message for message in told(app) if message.startswith("split-cents merged into main")] == told(app))
        await until(pilot, lambda: len(app.screen.query(Toast)) == 1)
        await until(pilot, lambda: "split-cents merged into main" in screen_text(app).splitlines()[-2])


async def test_the_whole_reason_of_the_chosen_task_stands_below_the_list():
    station = busy_station()
    station.change("queued-01", waiting_for="its back-off, 25 s more; the engine answered nothing twice")
    async with dashboard(station, size=(80, 24)) as (app, pilot):
        await press(pilot, "1")
        await until(pilot, lambda: "waits for its back-off, 25 s more; the engine answered nothing twice" in screen_text(app))
        await press(pilot, "4")
        await until(pilot, lambda: "checks: 1 of 1 checks failed twice: tests.test_calendar, leap day 2000" in screen_text(app))


async def test_an_answer_that_comes_before_its_screen_is_there_does_no_harm():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        for screen in (TaskScreen, ReviewScreen):
            app.push_screen(screen(app._desk, "split-cents"))
            app._detail(DetailArrived("split-cents", station.task("split-cents"), None))
            app._diff(DiffArrived("split-cents", station.diff("split-cents")))
            await until(pilot, lambda: app.screen.is_mounted and "notes of the agent" in shown(app))


async def test_a_verified_task_counts_as_seen_once_its_diff_was_shown():
    station = busy_station()
    station.change("split-cents", state="verified")
    async with dashboard(station, task="split-cents") as (app, pilot):
        await until(pilot, lambda: app.model.row("split-cents").state == "in-review")
        assert station.calls == [("look", "split-cents")]


async def test_station_lost_and_regained():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        station.go_down()
        await until(pilot, lambda: app.screen.has_class("-stale") and "station not answering since " in screen_text(app))
        assert "money-rounding" in screen_text(app)
        await press(pilot, "j", "j")
        assert app.screen.query_one(FleetList).chosen == "stock-negative"
        await press(pilot, "c", "y")
        await until(pilot, lambda: any("no station is running" in message for message in told(app)))

        station.change("stock-negative", step=7)
        station.put(FakeTask(row=row("newcomer", "queued")))
        station.come_back(pid=99)
        await until(pilot, lambda: "the station answers again" in told(app))
        await until(pilot, lambda: not app.screen.query_one(Banner).display and not app.screen.has_class("-stale"))
        assert app.model.row("stock-negative").step == 7
        assert app.model.row("newcomer") is not None
        assert app.screen.query_one(FleetList).chosen == "stock-negative"


async def test_a_station_that_hangs_never_freezes_the_keys():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        station.hold()
        await press(pilot, "j", "enter")
        assert isinstance(app.screen, TaskScreen)
        await press(pilot, "q", "j", "j")
        assert app.screen.query_one(FleetList).chosen == "csv-quotes"
        station.release()
        await press(pilot, "enter")
        await until(pilot, lambda: "step 3" in shown(app))


async def test_commands_on_the_chosen_task():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        await press(pilot, "r", *"look at 2000", "enter")
        await until(pilot, lambda: "leap-years is queued again" in told(app))
        await press(pilot, "2", "g", "s", "enter")
        assert isinstance(app.screen, CommentDialog), "saying nothing is no message"
        await press(pilot, *"hello", "enter")
        await until(pilot, lambda: len(station.calls) == 2)
        await press(pilot, "c")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await press(pilot, "n", "c", "y")
        await until(pilot, lambda: len(station.calls) == 3)
        assert station.calls == [
            ("retry", "leap-years", "look at 2000"),
            ("say", "money-rounding", "hello"),
            ("cancel", "money-rounding"),
        ]


async def test_escape_gives_no_command():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        await press(pilot, "r", *"no", "escape", "c", "escape")
        assert isinstance(app.screen, FleetScreen)
        assert station.calls == []


async def test_filter_by_words_and_back():
    async with dashboard(busy_station()) as (app, pilot):
        fleet = app.screen.query_one(FleetList)
        await press(pilot, "slash", *"bank")
        await until(pilot, lambda: set(fleet.ids) == {"bank-march", "bank-january", "bank-february"})
        assert "3 of 32 tasks that match 'bank'" in screen_text(app)
        await press(pilot, "enter")
        assert app.focused is fleet
        await press(pilot, "escape")
        await until(pilot, lambda: len(fleet.ids) == 32)
        assert app.screen.query_one("#filter", Input).value == ""


async def test_filter_by_state_and_other_orders():
    async with dashboard(busy_station()) as (app, pilot):
        fleet = app.screen.query_one(FleetList)
        await press(pilot, "4")
        await until(pilot, lambda: fleet.ids == ["leap-years"])
        await press(pilot, "0")
        await until(pilot, lambda: len(fleet.ids) == 32)
        await press(pilot, "o", "o")
        await until(pilot, lambda: fleet.ids[0] == "bank-february")
        assert "sorted by id" in screen_text(app)


async def test_jump_to_the_next_that_needs_a_person():
    async with dashboard(busy_station()) as (app, pilot):
        fleet = app.screen.query_one(FleetList)
        await press(pilot, "exclamation_mark")
        assert fleet.chosen == "split-cents"
        await press(pilot, "exclamation_mark")
        assert fleet.chosen == "invoice-0398"
        await press(pilot, "2", "exclamation_mark")
        await until(pilot, lambda: fleet.chosen == "leap-years" and len(fleet.ids) == 32)
        await press(pilot, "j", "exclamation_mark")
        assert fleet.chosen == "leap-years", "the most urgent first"
        for _ in range(8):
            await press(pilot, "exclamation_mark")
        assert fleet.chosen == "tax-rounding"
        await press(pilot, "exclamation_mark")
        assert fleet.chosen == "leap-years"


async def test_vim_keys_and_arrows_move_and_the_cursor_stays_on_its_task():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        fleet = app.screen.query_one(FleetList)
        await press(pilot, "j", "down", "k", "up", "j")
        assert fleet.chosen == "money-rounding"
        await press(pilot, "G")
        assert fleet.chosen == "bank-february"
        await press(pilot, "ctrl+u", "g", "ctrl+d")
        assert fleet.cursor > 5
        await press(pilot, "g", "j")
        station.change("money-rounding", state="failed")
        station.change("leap-years", state="queued")
        await until(pilot, lambda: fleet.ids[0] == "money-rounding")
        assert fleet.chosen == "money-rounding"
        assert fleet.cursor == 0


async def test_the_mouse_chooses_and_opens():
    async with dashboard(busy_station()) as (app, pilot):
        fleet = app.screen.query_one(FleetList)
        await pilot.click(FleetList, offset=(20, 3))
        assert fleet.chosen == "csv-quotes"
        await pilot.click(FleetList, offset=(20, 3))
        await until(pilot, lambda: isinstance(app.screen, TaskScreen))
        assert app.screen.selected == "csv-quotes"


async def test_on_a_wide_screen_the_pane_follows_the_cursor():
    async with dashboard(busy_station(), size=(200, 60)) as (app, pilot):
        await until(pilot, lambda: "2000 is a leap year" in shown(app))
        await press(pilot, "j")
        await until(pilot, lambda: "Make the failing test pass." in shown(app) and "writing now" in shown(app))


async def test_live_text_is_followed_until_somebody_scrolls_up():
    station = busy_station()
    async with dashboard(station, size=(80, 24)) as (app, pilot):
        await press(pilot, "j", "enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and "writing now" in shown(app))
        pager = app.screen.query_one(Pager)
        await until(pilot, lambda: pager.scroll_offset.y == pager.max_scroll_y > 0)
        station.write("money-rounding", "more\n" * 30)
        await until(pilot, lambda: "more\n  more" in shown(app))
        await until(pilot, lambda: pager.scroll_offset.y == pager.max_scroll_y)
        await press(pilot, "k", "k", "k")
        stayed = pager.scroll_offset.y
        station.write("money-rounding", "less\n" * 35)
        await until(pilot, lambda: "less\n  less" in shown(app))
        await pilot.pause()
        assert pager.scroll_offset.y == stayed < pager.max_scroll_y


async def test_files_are_reached_by_key_and_outputs_unfold():
    async with dashboard(busy_station(), size=(100, 20)) as (app, pilot):
        await press(pilot, "3", "v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and "Ran 4 tests" in shown(app))
        pager = app.screen.query_one(Pager)
        await press(pilot, "J")
        await until(pilot, lambda: pager.render_line(0).text.startswith("M shop/money.py"))
        await press(pilot, "K")
        await until(pilot, lambda: pager.scroll_offset.y == 0)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen))
        await until(pilot, lambda: "lines folded" in shown(app))
        await press(pilot, "z")
        await until(pilot, lambda: "lines folded" not in shown(app))


async def test_help_and_palette_offer_everything():
    async with dashboard(busy_station()) as (app, pilot):
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await press(pilot, "q")
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert {
            "Review the task",
            "Cancel the task",
            "Retry the task",
            "Say something to the agent",
            "Filter the list",
            "Help",
            "Leave",
        } <= set(titles)
        await press(pilot, "v")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert {"Approve the task", "Reject the task", "Merge the task", "Next to review"} <= set(titles)
        await press(pilot, "colon")
        await until(pilot, lambda: type(app.screen).__name__ == "CommandPalette")
        await press(pilot, "escape")


async def test_the_stations_warning_is_on_every_screen():
    station = busy_station()
    station.warn("commands run without a sandbox")
    async with dashboard(station, size=(80, 24)) as (app, pilot):
        for key, screen in (("enter", TaskScreen), ("v", ReviewScreen), ("q", TaskScreen), ("q", FleetScreen)):
            await until(pilot, lambda: "⚠ commands run without a sandbox" in screen_text(app))
            await press(pilot, key)
            await until(pilot, lambda screen=screen: isinstance(app.screen, screen))


async def test_a_paste_with_line_breaks_is_one_comment():
    station = busy_station()
    async with dashboard(station) as (app, pilot):
        await press(pilot, "r")
        await until(pilot, lambda: isinstance(app.screen, CommentDialog))
        app.screen.query_one(TextArea).insert("one\ntwo")
        await press(pilot, "enter")
        await until(pilot, lambda: station.calls == [("retry", "leap-years", "one\ntwo")])


async def test_an_empty_station_says_what_to_do():
    async with dashboard(FakeStation()) as (app, pilot):
        await until(pilot, lambda: "no tasks yet: add some with `stationmaster add`" in screen_text(app))
        await press(pilot, "enter", "v", "exclamation_mark", "c", "j", "G", "ctrl+d")
        assert isinstance(app.screen, FleetScreen)


async def test_q_leaves():
    station = busy_station()
    app = Dashboard(station)
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        await press(pilot, "q")
    assert app.return_code == 0
    assert station.calls == []

"""The threads that talk to the station, without a screen."""

import threading

from tests.tui.conftest import busy_station, to_review
from tui.client import Feed, Lane, SnapshotArrived, StationLost
from tui.desk import CommandDone, CommandFailed, Desk, DetailArrived

WAIT_S = 10.0


class Inbox:
    """Collects messages; `wait(n)` gives the first n."""

    def __init__(self, on_message=None):
        self.messages = []
        self.changed = threading.Condition()
        self.on_message = on_message

    def post(self, message):
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()
        if self.on_message:
            self.on_message(message)

    def wait(self, count, kind=object):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.of(kind)) >= count, WAIT_S), self.messages
            return self.of(kind)[:count]

    def of(self, kind):
        return [message for message in self.messages if isinstance(message, kind)]


def test_a_full_lane_refuses_or_drops_the_oldest():
    held, done = threading.Event(), threading.Event()
    order = []
    for newest_wins, accepted, ran in ((False, [True, False], ["first"]), (True, [True, True], ["second"])):
        held.clear()
        done.clear()
        order.clear()
        begun = threading.Event()
        lane = Lane("test", depth=1, newest_wins=newest_wins)
        lane.start()
        lane.submit(lambda begun=begun: (begun.set(), held.wait(WAIT_S)))
        assert begun.wait(WAIT_S)
        answers = [lane.submit(lambda: (order.append("first"), done.set())), lane.submit(lambda: (order.append("second"), done.set()))]
        held.set()
        assert done.wait(WAIT_S)
        assert (answers, order) == (accepted, ran)
        lane.close()


def test_the_next_snapshot_is_asked_for_only_when_the_last_one_was_taken():
    station, inbox = busy_station(), Inbox()
    feed = Feed(station, inbox.post, poll_s=0.0)
    feed.start()
    (first,) = inbox.wait(1, SnapshotArrived)
    assert len(first.snapshot.tasks) == 32
    feed.go_on_after(first.snapshot.seq)
    assert len(inbox.messages) == 1
    first.taken.set()
    second = inbox.wait(2, SnapshotArrived)[1]
    feed.close()
    assert {row.state for row in second.snapshot.tasks} == {"preparing", "running"}


def test_a_silent_station_is_asked_again_with_growing_pauses():
    station, inbox = busy_station(), Inbox()
    station.go_down()
    feed = Feed(station, inbox.post, back_off_s=(0.0, 0.001, 0.002))
    feed.start()
    lost = inbox.wait(4, StationLost)
    assert [message.wait_s for message in lost] == [0.0, 0.001, 0.002, 0.002]
    assert "no station is running" in lost[0].trouble.message
    station.come_back()
    inbox.wait(1, SnapshotArrived)
    feed.close()


def test_refusals_come_back_with_their_hint():
    station, inbox = busy_station(), Inbox()
    desk = Desk(station, inbox.post)
    desk.start()
    desk.command("cancel", "utf8-names")
    desk.command("approve", "no-such-task")
    cancel, approve = inbox.wait(2, CommandFailed)
    desk.close()
    assert "utf8-names is merged: nothing to cancel" in cancel.trouble.message
    assert approve.trouble.hint == "`stationmaster list` shows them all"


def test_a_merge_never_overtakes_the_approval_before_it():
    station, inbox = busy_station(), Inbox()
    desk = Desk(station, inbox.post)
    desk.start()
    desk.command("approve", "split-cents")
    desk.command("merge", "split-cents")
    inbox.wait(2, CommandDone)
    desk.close()
    assert station.calls == [("approve", "split-cents"), ("merge", "split-cents")]


def test_a_merge_with_conflicts_is_told_as_refused():
    station, inbox = busy_station(), Inbox()
    task = to_review("clash")
    task.conflicts = ["shop/money.py"]
    station.put(task)
    desk = Desk(station, inbox.post)
    desk.start()
    desk.command("approve", "clash")
    desk.command("merge", "clash")
    _, done = inbox.wait(2, CommandDone)
    desk.close()
    assert done.refused
    assert done.text == "clash not merged: conflicts with main: nothing was changed (shop/money.py)"


def test_a_detail_comes_with_its_trajectory():
    station, inbox = busy_station(), Inbox()
    desk = Desk(station, inbox.post)
    desk.start()
    desk.look_up("split-cents", trajectory=True)
    (arrived,) = inbox.wait(1, DetailArrived)
    desk.close()
    assert arrived.detail.row.id == "split-cents"
    assert len(arrived.entries) == 8

"""A station in the middle of its work, made by hand: what the pictures in `docs/images` show and what journeys start from."""

from __future__ import annotations

from agents.messages import Assistant, Message, System, ToolCall, ToolResult, Usage, User
from orchestrator.task import Activity, Kind, State
from orchestrator.views import AttemptView, CheckOutput, CheckView, EngineView, Failure, FileView, HunkView, TaskRow
from tui.fake import FakeStation, FakeTask

BASE = "4f1c0a9d2b6e8f7a5c3d1e0b9a8f7c6d5e4b3a29"
SNAPSHOT = "9be2714c3d5f6a7b8c9d0e1f2a3b4c5d6e7f8a91"
CHECK = "python3 -m unittest tests.test_money"


def row(task: str, state: State, **fields: object) -> TaskRow:
    """A row with the fields that matter to a test, the others as they are for a task of that state."""
    known: dict[str, object] = {
        "id": task,
        "title": task.replace("-", " ").capitalize(),
        "kind": "coding",
        "state": state,
        "state_age_s": 12.0,
        "waiting_for": None,
        "attempt": 0 if state == "queued" else 1,
        "step": None if state == "queued" else 3,
        "agent": "builtin",
        "workspace": None if state == "queued" else f"/home/ada/.local/state/stationmaster/workspaces/{task}/1",
        "branch": None if state == "queued" else f"stationmaster/{task}-1",
        "base_commit": BASE,
        "snapshot_commit": None if state == "queued" else SNAPSHOT,
        "input_tokens": None if state == "queued" else 18_400,
        "cached_tokens": None if state == "queued" else 12_100,
        "output_tokens": None if state == "queued" else 1_240,
        "tokens_per_s": None,
        "files_changed": None if state == "queued" else 2,
        "insertions": None if state == "queued" else 14,
        "deletions": None if state == "queued" else 3,
        "checks": [],
        "failure": None,
    }
    return TaskRow(**{**known, **fields})


def engine(**fields: object) -> EngineView:
    known: dict[str, object] = {
        "url": "http://127.0.0.1:8100/v1",
        "simulated": True,
        "model": "simulated/nemotron-3-nano-30b",
        "healthy": True,
        "message": "ok",
        "age_s": 0.4,
        "max_model_len": 131_072,
        "running": 9,
        "waiting": 2,
        "kv_cache_usage": 0.37,
        "output_tokens": 61_400,
    }
    return EngineView(**{**known, **fields})


PASSED = [CheckView(command=CHECK, exit_code=0, seconds=0.61)]
FAILED = [CheckView(command=CHECK, exit_code=1, seconds=0.7)]

_AT_WORK: tuple[tuple[str, str, Kind, Activity, str, int, int, float | None, tuple[int, int, int]], ...] = (
    ("money-rounding", "Round half to even when splitting an invoice", "coding", "model", "run python3 -m unittest tests.test_money", 4, 3_120, 61.2, (12, 4, 2)),
    ("stock-negative", "A return must not make stock negative", "coding", "tool", "run python3 -m unittest tests.test_stock", 6, 4_871, None, (31, 9, 3)),
    ("csv-quotes", "Quotes inside quoted fields", "coding", "model", "edit shop/importer.py", 3, 1_906, 58.0, (5, 2, 1)),
    ("invoice-0417", "Fields of invoice 0417 (PDF)", "document", "model", "read inbox/invoice-0417.pdf", 2, 840, 63.9, (0, 0, 0)),
    ("contract-dates", "Dates and notice periods of a contract (DOCX)", "document", "waiting-engine", "✗ search no match for 'notice'", 5, 2_244, None, (18, 0, 1)),
    ("bank-march", "Bank statement March into the ledger", "accounting", "model", "write ledger/2026-03.journal", 7, 6_310, 60.4, (148, 0, 1)),
    ("vat-quarter", "VAT of the first quarter", "accounting", "checks", "submit", 9, 7_702, None, (64, 12, 4)),
    ("price-list", "Price list out of a workbook (XLSX)", "document", "model", "read inbox/prices.xlsx", 3, 1_180, 62.7, (22, 0, 1)),
    ("discount-stack", "Two discounts apply in the wrong order", "coding", "workspace", "", 0, 0, None, (0, 0, 0)),
)  # fmt: skip


def _conversation() -> list[Message]:
    return [
        System(text="You are an agent at work in a git workspace. " * 40),
        User(text="Splitting an invoice of 10.00 three ways loses a cent. Make `split` give parts that add up, larger parts first."),
        Assistant(
            text="I will look at the code and its test first.",
            reasoning="The parts must add up exactly, so the remainder has to go somewhere.\nThe test probably fixes where: larger parts first.",
            tool_calls=(ToolCall(id="c1", name="read", arguments='{"path": "shop/money.py"}'),),
            finish_reason="tool_calls",
            usage=Usage(input_tokens=4_100, output_tokens=312, cached_tokens=3_900),
        ),
        ToolResult(
            call_id="c1",
            name="read",
            text="from decimal import ROUND_HALF_UP, Decimal\n\nCENT = Decimal('0.01')\n\n\ndef split(total: Decimal, parts: int) -> list[Decimal]:\n    share = (total / parts).quantize(CENT, ROUND_HALF_UP)\n    return [share] * parts\n",
            ok=True,
            seconds=0.004,
        ),
        Assistant(
            text="",
            reasoning="Floor the share, then hand out the cents that are left.",
            tool_calls=(
                ToolCall(
                    id="c2",
                    name="edit",
                    arguments='{"path": "shop/money.py", "old": "    share = (total / parts).quantize(CENT, ROUND_HALF_UP)\\n    return [share] * parts", "new": "    share = (total / parts).quantize(CENT, ROUND_FLOOR)\\n    left = int((total - share * parts) / CENT)\\n    return [share + CENT] * left + [share] * (parts - left)"}',
                ),
            ),
            finish_reason="tool_calls",
            usage=Usage(input_tokens=4_800, output_tokens=541, cached_tokens=4_100),
        ),
        ToolResult(call_id="c2", name="edit", text="1 replacement in shop/money.py", ok=True, seconds=0.006),
        Assistant(
            text="",
            tool_calls=(ToolCall(id="c3", name="run", arguments=f'{{"command": "{CHECK}"}}'),),
            finish_reason="tool_calls",
            usage=Usage(input_tokens=5_400, output_tokens=88, cached_tokens=4_800),
        ),
        ToolResult(
            call_id="c3",
            name="run",
            text="E\n======================================================================\nERROR: test_money (unittest.loader._FailedTest.test_money)\n----------------------------------------------------------------------\nImportError: Failed to import test module: test_money\nTraceback (most recent call last):\n  File \"/work/shop/money.py\", line 9, in split\n    share = (total / parts).quantize(CENT, ROUND_FLOOR)\nNameError: name 'ROUND_FLOOR' is not defined. Did you mean: 'ROUND_HALF_UP'?\n\n----------------------------------------------------------------------\nRan 1 test in 0.001s\n\nFAILED (errors=1)\n[exit 1]\n".replace(
                "/work/", "/src/"
            ),
            ok=False,
            seconds=0.62,
        ),
    ]


def _change() -> list[FileView]:
    return [
        FileView(
            path="shop/money.py",
            old_path="shop/money.py",
            status="modified",
            old_mode="100644",
            new_mode="100644",
            binary=False,
            insertions=4,
            deletions=3,
            hunks=[
                HunkView(
                    id="11aa22bb",
                    header="@@ -1,9 +1,10 @@",
                    lines=[
                        "-from decimal import ROUND_HALF_UP, Decimal",
                        "+from decimal import ROUND_FLOOR, Decimal",
                        " ",
                        " CENT = Decimal('0.01')",
                        " ",
                        " ",
                        " def split(total: Decimal, parts: int) -> list[Decimal]:",
                        "-    share = (total / parts).quantize(CENT, ROUND_HALF_UP)",
                        "-    return [share] * parts",
                        "+    share = (total / parts).quantize(CENT, ROUND_FLOOR)",
                        "+    left = int((total - share * parts) / CENT)",
                        "+    return [share + CENT] * left + [share] * (parts - left)",
                    ],
                )
            ],
        ),
        FileView(
            path="tests/test_money.py",
            old_path="tests/test_money.py",
            status="modified",
            old_mode="100644",
            new_mode="100644",
            binary=False,
            insertions=5,
            deletions=0,
            hunks=[
                HunkView(
                    id="33cc44dd",
                    header="@@ -14,3 +14,8 @@ class SplitTest(unittest.TestCase):",
                    lines=[
                        "     def test_even(self) -> None:",
                        "         self.assertEqual(split(Decimal('9.00'), 3), [Decimal('3.00')] * 3)",
                        " ",
                        "+    def test_parts_add_up(self) -> None:",
                        "+        parts = split(Decimal('10.00'), 3)",
                        "+        self.assertEqual(sum(parts), Decimal('10.00'))",
                        "+        self.assertEqual(parts, sorted(parts, reverse=True))",
                        "+",
                    ],
                )
            ],
        ),
        FileView(
            path="docs/rounding.png",
            old_path=None,
            status="added",
            old_mode=None,
            new_mode="100644",
            binary=True,
            insertions=None,
            deletions=None,
            hunks=[],
        ),
    ]


def to_review(task: str, title: str = "Parts of a split invoice add up", *, checks: list[CheckView] = PASSED, **fields: object) -> FakeTask:
    """A task whose work is done and waits for a verdict."""
    return FakeTask(
        row=row(
            task, "in-review", title=title, checks=checks, output_tokens=5_310, step=8, insertions=9, deletions=3, files_changed=3, **fields
        ),
        prompt="Splitting an invoice of 10.00 three ways loses a cent. Make `split` give parts that add up, larger parts first.",
        messages=_conversation(),
        checks=[
            CheckOutput(
                command=CHECK, exit_code=checks[0].exit_code, seconds=0.61, output="....\n" + "-" * 70 + "\nRan 4 tests in 0.002s\n\nOK\n"
            )
        ],
        files=_change(),
        attempts=[_attempt(1, "submitted")],
        notes=[
            "`split` floors each share and hands the cents that are left to the first parts.",
            "docs/rounding.png shows the old and the new way.",
        ],
    )


def _attempt(number: int, outcome: str | None, failure: Failure | None = None) -> AttemptView:
    return AttemptView(
        base_commit="4f1c0a9d" * 5,
        number=number,
        workspace=None,
        branch=None,
        snapshot_commit=SNAPSHOT,
        started_at=0.0,
        ended_at=None,
        outcome=outcome,
        failure=failure,
        resumptions=0,
        steps=8,
        input_tokens=18_400,
        output_tokens=5_310,
    )


def _failed_task() -> FakeTask:
    failure = Failure(kind="checks", message="1 of 1 checks failed twice: tests.test_calendar, leap day 2000")
    known = row(
        "leap-years",
        "failed",
        title="Leap years in the interest calendar",
        failure=failure,
        attempt=2,
        step=11,
        checks=FAILED,
        output_tokens=9_120,
    )
    return FakeTask(
        row=known, prompt="2000 is a leap year.", attempts=[_attempt(1, "submitted", failure), _attempt(2, "submitted", failure)]
    )


def busy_station() -> FakeStation:
    """32 tasks: nine at work, one failed, eight to review, two merged, the others waiting."""
    station = FakeStation(agents=9, engine=engine())
    station.tokens_per_s, station.input_tokens_per_s, station.unattributed_tokens = 1_184.0, 3_410.0, 0
    for task, title, kind, activity, tool, step, output, rate, (added, removed, files) in _AT_WORK:
        known = row(
            task, "running" if activity != "workspace" else "preparing", title=title, kind=kind, activity=activity, last_tool=tool or None, step=step or None,
            output_tokens=output, tokens_per_s=rate, insertions=added, deletions=removed, files_changed=files, state_age_s=3.0 + step * 7,
        )  # fmt: skip
        station.put(FakeTask(row=known, prompt="Make the failing test pass.", messages=_conversation(), attempts=[_attempt(1, None)],
                             live_text="`ROUND_FLOOR` is not imported. I will add it to the import at the top of the file\nand run the test ag"))  # fmt: skip
    station.put(_failed_task())
    for i, task in enumerate(
        ("split-cents", "invoice-0398", "bank-january", "sku-case", "refund-twice", "letter-0311", "ledger-opening", "tax-rounding")
    ):
        kind: Kind = ("coding", "document", "accounting")[i % 3]
        station.put(to_review(task, kind=kind, state_age_s=40.0 + 61 * i, approved=i == 1, checks=FAILED if i == 6 else PASSED))
    for i, task in enumerate(("utf8-names", "bank-february")):
        station.put(FakeTask(row=row(task, "merged", merged_commit="c0ffee1234567890", checks=PASSED, state_age_s=400.0 + i)))
    for i in range(12):
        reason = "an agent's turn: 9 of 9 are busy" if i else "money-rounding to be merged"
        station.put(FakeTask(row=row(f"queued-{i + 1:02}", "queued", title="Waits for its turn", waiting_for=reason, state_age_s=95.0)))
    return station

"""The demo's own checks refuse wrong work: they are what makes its 31 verified tasks mean something."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .playing import DEMO, Place, script_of

DOCUMENTS = {
    "invoice-nordwind": "nordwind-invoice",
    "delivery-note-harbour": "harbour-delivery-note",
    "market-expenses": "market-expenses",
    "tea-price-list": "teahouse-prices",
}
LEDGERS = {"bank-nordbank": "nordbank-giro", "payments-payfast": "payfast", "card-harbour": "harbour-card"}


async def solved(task: str, folder: Path) -> Place:
    shutil.copytree(DEMO / "repo", folder / "repo", ignore=shutil.ignore_patterns("__pycache__"))
    place = Place(folder / "repo")
    for step in script_of(task):
        for call in step.get("call", []):
            if call["tool"] in ("edit", "write") or "tools/book.py" in call["arguments"].get("command", ""):
                await place.call(call["tool"], call["arguments"])
    return place


def wrong(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, int):
        return value + 1
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return value[:-2] + ("11" if value[-2:] != "11" else "12")
    if re.fullmatch(r"-?\d+\.\d+", value):
        return "1" + value
    return value[1:]


def spoiled(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The answer with one thing wrong, each thing in turn."""
    for name in answer["fields"]:
        other = json.loads(json.dumps(answer))
        other["fields"][name]["value"] = wrong(other["fields"][name]["value"])
        yield f"value of {name}", other
        if answer["fields"][name]["source"]:
            other = json.loads(json.dumps(answer))
            other["fields"][name]["source"]["text"] += " "
            yield f"source of {name}", other
        yield f"no {name}", answer | {"fields": {key: value for key, value in answer["fields"].items() if key != name}}
    for number, line in enumerate(answer.get("lines", [])):
        for column in line["values"]:
            other = json.loads(json.dumps(answer))
            other["lines"][number]["values"][column] = wrong(line["values"][column])
            yield f"{column} of line {number}", other
        yield f"no line {number}", answer | {"lines": answer["lines"][:number] + answer["lines"][number + 1 :]}
    yield "one page too many unread", answer | {"unread": [*answer["unread"], "page 9"]}


@pytest.mark.parametrize("task", DOCUMENTS)
async def test_one_wrong_thing_in_a_document_is_refused(task: str, tmp_path: Path) -> None:
    place, name = await solved(task, tmp_path), DOCUMENTS[task]
    out = place.tree / "out" / f"{name}.json"
    answer = json.loads(out.read_text())
    assert (await place.sh(f"python3 -B tools/check_document.py specs/{name}.toml"))[0] == 0
    cases = list(spoiled(answer))
    # One process for all cases: what is spoiled differs, the check is the same.
    (place.tree / "cases.json").write_text(json.dumps([case for _, case in cases]))
    program = (
        "import io, json, sys, contextlib; sys.path.insert(0, 'tools'); import check_document; "
        f"sys.argv = ['check', 'specs/{name}.toml']\n"
        "for case in json.load(open('cases.json')):\n"
        f"    json.dump(case, open('out/{name}.json', 'w'))\n"
        "    with contextlib.redirect_stdout(io.StringIO()): code = check_document.main()\n"
        "    print(code)\n"
    )
    (place.tree / "all.py").write_text(program)
    codes = (await place.sh("python3 -B all.py"))[1].split()
    assert len(codes) == len(cases)
    assert [what for (what, _), code in zip(cases, codes, strict=True) if code != "1"] == []


def test_specs_hold_no_expected_values() -> None:
    for path in (DEMO / "repo" / "specs").glob("*.toml"):
        for name, field in tomllib.loads(path.read_text())["fields"].items():
            assert set(field) <= {"type", "label", "derived"}, f"{path.name}: {name}"


@pytest.mark.parametrize("task", LEDGERS)
async def test_one_wrong_thing_in_a_ledger_is_refused(task: str, tmp_path: Path) -> None:
    place, name = await solved(task, tmp_path), LEDGERS[task]
    ledger = place.tree / "ledger" / f"{name}.ledger"
    text = ledger.read_text()
    blocks = text.rstrip("\n").split("\n\n")
    cases = {
        "a row left out": "\n\n".join(blocks[:-1]),
        "a row twice": "\n\n".join([*blocks, blocks[-1]]),
        "a cent too much on one side": re.sub(r"(\d)(?= [A-Z]{3}\s*$)", lambda digit: str((int(digit[1]) + 1) % 10), text),
        "an account of its own": text.replace("expenses:fees", "expenses:feet"),
        "another day": text.replace("2026-04-", "2026-05-", 2),
        "no opening balance": "\n\n".join(block for block in blocks if "row: opening" not in block),
        "another currency": re.sub(r" (EUR|GBP)", " USD", text),
        "words": text + "\nplease add the rest\n",
    }
    assert (await place.sh(f"python3 -B tools/check_ledger.py {name}"))[0] == 0
    for what, spoilt in cases.items():
        assert spoilt != text, what
        ledger.write_text(spoilt)
        code, output = await place.sh(f"python3 -B tools/check_ledger.py {name}")
        assert (code, output[:5]) == (1, "WRONG"), f"{what}: {output}"

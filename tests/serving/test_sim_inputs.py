"""Profiles, scripts and faults as a person writes them."""

import json
from pathlib import Path

import pytest

from agents.tools.arguments import schemas
from orchestrator.errors import UserError
from orchestrator.serving.sim.faults import Fault, Faults, parse_faults
from orchestrator.serving.sim.profile import load_profile, preset_names
from orchestrator.serving.sim.script import load_scripts


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_says_that_it_is_simulated(name: str):
    assert load_profile(name).model == f"simulated/{name}"


def test_without_a_profile_the_demo_preset_is_taken():
    assert load_profile(None).name == "demo"


def test_256_streams_of_the_benchmark_preset_share_12000_tokens_a_second():
    assert 256 / load_profile("plain-12k").decode_table_s()[256] == pytest.approx(12_000)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name = 'x'\n", "decode_step_ms"),
        ("name = 'x'\ndecode_step_ms = [[1, 5.0]]\nspeed = 3\n", "speed"),
        ("name = 'x'\ndecode_step_ms = [[2, 5.0], [1, 6.0]]\n", "rising"),
        ("name = 'x'\ndecode_step_ms = [[100, 1.0], [200, 9.0]]\n", "without duration"),
        ("name = 'x'\ndecode_step_ms = [[1, 5.0]]\nnum_gpu_blocks = 4\n", "num_gpu_blocks"),
        ("name = 'x'\ndecode_step_ms = [[1, 5.0]]\nacceptance_rates = [0.5, 0.9]\n", "acceptance_rates"),
        ("name = \n", "line 1"),
    ],
)
def test_a_faulty_profile_is_refused_with_its_file_and_key(tmp_path: Path, text: str, names: str):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=names) as refused:
        load_profile(str(path))
    assert str(path) in str(refused.value)


def test_a_profile_may_be_json(tmp_path: Path):
    path = tmp_path / "p.json"
    path.write_text('{"name": "x", "decode_step_ms": [[1, 5.0], [10, 14.0]]}')
    assert load_profile(str(path)).decode_table_s()[5] == pytest.approx(0.009)


def test_an_unknown_preset_names_the_ones_there_are():
    with pytest.raises(UserError) as refused:
        load_profile("gb300")
    assert "plain-12k" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("task = 'a'\n", "step"),
        ("task = 'a'\n[[step]]\ntxt = 'hi'\n", "txt"),
        ("task = 'a'\n[[step]]\n", "a step needs"),
        ("task = 'a'\n[[step]]\n[[step.call]]\ntool = 'run'\nargs = {}\n", "args"),
        ("task = 'a'\n[[step\n", "line 2"),
    ],
)
def test_a_faulty_script_is_refused_with_its_file_and_key(tmp_path: Path, text: str, names: str):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UserError, match=names) as refused:
        load_scripts(tmp_path)
    assert "a.toml" in str(refused.value)


def test_two_scripts_for_one_task_are_refused(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text("task = 't'\n[[step]]\ntext = 'hi'\n")
    with pytest.raises(UserError, match="already"):
        load_scripts(tmp_path)


def test_a_missing_script_folder_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="no script folder"):
        load_scripts(tmp_path / "none")


def test_faults_take_a_share_and_seconds():
    assert parse_faults(["cut-stream", "no-usage=0.25", "http-429=3", "slow-start=2:0.5"]) == [
        Fault(name="cut-stream"),
        Fault(name="no-usage", share=0.25),
        Fault(name="http-429", seconds=3.0),
        Fault(name="slow-start", seconds=2.0, share=0.5),
    ]


@pytest.mark.parametrize("text", ["explode", "cut-stream=2", "cut-stream=often", "http-429", "slow-start=-1", "slow-start=1:x"])
def test_a_faulty_fault_is_refused(text: str):
    with pytest.raises(UserError):
        parse_faults([text])


def test_a_share_hits_about_so_many_requests_the_same_ones_for_the_same_seed():
    def hit(seed: int) -> list[bool]:
        faults = Faults(parse_faults(["cut-stream=0.2"]), seed=seed)
        return [bool(faults.of_request(digest)) for digest in range(2000)]

    assert hit(1) == hit(1) != hit(2)
    assert 300 < sum(hit(1)) < 500


def test_a_request_that_is_sent_again_gets_a_new_draw():
    faults = Faults(parse_faults(["http-503=0.5"]), seed=0)
    assert len({bool(faults.of_request(42)) for _ in range(30)}) == 2


def test_the_table_of_tools_for_those_who_write_scripts_is_the_agents_own():
    lines = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text().splitlines()
    start = lines.index("| tool | arguments | |") + 2
    table = {}
    for line in lines[start : start + len(schemas())]:
        _, tool, arguments, *_ = (cell.strip() for cell in line.split("|"))
        table[tool.strip("`")] = {name: "(" in rest for name, rest in (part.split("`")[1:] for part in arguments.split(", "))}
    contract = {}
    for schema in schemas():
        parameters = json.loads(bytes(schema.parameters))
        contract[schema.name] = {name: name not in parameters.get("required", []) for name in parameters["properties"]}
    assert table == contract

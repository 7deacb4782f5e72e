"""Commands by hand: what they read and is outdated is refused, with what to type."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.subjects import step_subject
from evaluation.commands.parser import build_parser
from evaluation.dependencies.steps import COLLECT
from evaluation.errors import CacheError, ConfigError, ResultsError
from evaluation.records import record_path
from evaluation.results.deltas_file import StepDeltas
from evaluation.settings import protocol
from tests.dependencies.evaluated import write_evaluated
from tests.watching.stand_in import leave_records
from tests.workflow.world import World

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of two stages with records of all that a run leaves of them."""
    return write_evaluated(tmp_path)


def run(config: Path, command: str) -> int:
    words = shlex.split(command.format(config=config))
    given = [] if words[0] == "compare" else ["--config", str(config)]
    options = build_parser().parse_args([*words, *given])
    code: int = options.run(options)
    return code


def edited(config: Path, edit: Edit) -> None:
    content = yaml.safe_load(config.read_text())
    edit(content)
    config.write_text(yaml.safe_dump(content, sort_keys=False))


def fewer_objectives(content: dict[str, Any]) -> None:
    content["stages"]["second"]["objective"].pop()


def another_margin(content: dict[str, Any]) -> None:
    content["stages"]["second"]["objective"][0]["margin"] = 0.3


def another_dtype(content: dict[str, Any]) -> None:
    content["scoring"] = {"dtype": "bfloat16"}


def another_group(content: dict[str, Any]) -> None:
    path = Path(content["suites"]) / "all.yaml"
    suite = yaml.safe_load(path.read_text())
    suite["tasks"]["quiz"]["group"] = "hard"
    path.write_text(yaml.safe_dump(suite, sort_keys=False))


DELTAS, COLLECT_ALL = "deltas --stage second --step 10 20", "collect --stage second --step 10 20"
CASES: dict[Edit, dict[str, str]] = {
    fewer_objectives: {"tables --stage second": DELTAS},
    another_margin: {
        "tables --stage second": DELTAS,
        "figures --stage second": DELTAS,
        "bridge-table": DELTAS,
        "bridge-table --stage second": DELTAS,
        "front-page": DELTAS,
        "export --format tensorboard --output logs": DELTAS,
    },
    another_group: {
        "tables --stage second": COLLECT_ALL,
        "deltas --stage second --step 20": "collect --stage second --step 20",
        "bridge-table": "collect --stage first --step 100",
        "compare {config} {config}": "collect --stage first --step 100",
    },
    another_dtype: {
        "collect --stage second --step 10": "score --stage second --step 10",
        "collect --stage second --bridge": "score --stage second --bridge",
        "tables --stage first": "score --stage first --step 100",
    },
}
"""Commands by what was edited, with the one that each asks for."""


@pytest.mark.parametrize("edit", CASES)
def test_what_is_outdated_is_not_read(config: Path, edit: Edit) -> None:
    edited(config, edit)
    for command, remedy in CASES[edit].items():
        name, _, rest = remedy.partition(" ")
        with pytest.raises(ResultsError) as caught:
            run(config, command)
        typed = f"run `python -m evaluation {name} --config {config} {rest}`"
        assert typed in str(caught.value), command


def test_a_stage_is_shown_although_another_is_outdated(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(config, another_margin)
    assert run(config, "bridge-table --stage first") == 0
    assert capsys.readouterr().out.strip() == "first: no bridge"
    assert run(config, "bridge-table --stage first --json") == 0
    assert list(json.loads(capsys.readouterr().out)["stages"]) == ["first"]


def test_data_edited_after_prefill_is_prefilled_first(world: World) -> None:
    leave_records(step_subject(world.plans["stage1"], 10))
    path = world.folder / "data/quiz/test.jsonl"
    path.write_text(path.read_text().replace('"label": 0', '"label": 1', 1))
    with pytest.raises(ResultsError, match="run `python -m evaluation score"):
        run(world.config, "collect --stage stage1 --step 10")
    with pytest.raises(CacheError, match=r"quiz was made from other data .* prefill"):
        run(world.config, "score --stage stage1 --step 10")


def test_what_is_current_is_read_and_the_remedy_helps(config: Path) -> None:
    assert run(config, "tables --stage second") == 0
    edited(config, fewer_objectives)
    with pytest.raises(ResultsError) as caught:
        run(config, "tables --stage second")
    (typed,) = re.findall(r"run `python -m evaluation (.*)`", str(caught.value))
    options = build_parser().parse_args(shlex.split(typed))
    assert options.run(options) == 0
    assert run(config, "tables --stage second") == 0
    path = config.parent / "results/second/by_checkpoint/step_20/bridge_deltas.json"
    assert len(StepDeltas.read(path).objectives) == 1


def test_an_export_reads_its_stages_alone(config: Path) -> None:
    edited(config, another_margin)
    export = f"export --output {config.parent}/out --format tensorboard"
    for chosen in ("--stage first", "--stage first --step 100"):
        assert run(config, f"{export} {chosen}") == 0
    with pytest.raises(ConfigError, match="--step 10: no results of this step in first"):
        run(config, f"{export} --stage first --step 10")
    for refused in ("", "--stage second", "--step 100"):
        with pytest.raises(ResultsError, match="deltas of second"):
            run(config, f"{export} {refused}")


@pytest.mark.parametrize("missing", [False, True])
def test_a_verdict_of_outdated_tables_is_said_to_be_that(
    config: Path, missing: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def status() -> tuple[dict[str, Any], str]:
        run(config, "status --json")
        read = json.loads(capsys.readouterr().out)
        run(config, "status")
        return read["stages"]["second"], capsys.readouterr().out

    if missing:  # a step that is still to be scored makes no verdict outdated
        edited(config, lambda content: content["stages"]["second"]["steps"].append(30))
        for command in ("deltas --stage second --step 10 20", "tables --stage second"):
            assert run(config, command) == 0
        capsys.readouterr()
    stage, text = status()
    assert stage["verdict"]
    assert not stage["verdict_outdated"]
    assert "outdated tables" not in text
    edited(config, another_margin)
    stage, text = status()
    assert stage["verdict"]
    assert stage["verdict_outdated"]
    provisional = ", provisional" if missing else ""
    assert f"second: incomplete; {stage['verdict']}{provisional} (of outdated tables)" in text


def test_tables_of_another_protocol(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REPORT", "report-0")
    with pytest.raises(
        ResultsError, match=r"tables of second are damaged, or were made from .* tables --"
    ):
        run(config, "figures --stage second")


def test_others_go_on_without_what_failed_or_is_missing(config: Path) -> None:
    results = config.parent / "results/second"
    record_path(results / "by_checkpoint/step_10", COLLECT).unlink()
    with pytest.raises(ResultsError, match="deltas of second, step 10, are damaged"):
        run(config, "tables --stage second")
    record_path(results / "by_checkpoint/step_10", "deltas").unlink()
    assert run(config, "tables --stage second") == 0

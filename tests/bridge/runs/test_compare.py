"""Two runs at the checkpoints that meet: deltas, intervals over all of them, and which run is better."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow.csv
import pytest

from evaluation.bridge.delta import OVERALL
from evaluation.bridge.runs.compare import StageComparison, compare_runs
from evaluation.bridge.runs.find import find_run
from evaluation.bridge.runs.leads import Lead
from evaluation.results.table import TABLE_COLUMNS
from evaluation.settings.runs import By
from tests.bridge.folders import make_plans, write_side
from tests.tools.conftest import Command, command

__all__ = ["command"]
STEPS = (10, 20, 30, 40)
ACC = ("tier3", OVERALL, "delta_acc")


def folder_of(root: Path, name: str, step: int) -> Path:
    """Results of a step of the run of this name."""
    return root / name / "results/second/by_checkpoint" / f"step_{step}"


def write_run(
    folder: Path,
    number: int,
    steps: tuple[int, ...] = STEPS,
    gains: Mapping[int, float] = MappingProxyType({}),
    tokens_per_step: int = 1000,
) -> None:
    """A run whose later steps are better; `gains` by step is what it is better by, on top of that."""
    plan = make_plans(folder, steps=steps)["second"]
    sizes = {"items": 200, "blocks": 40, "prompts": 24}
    for step in steps:
        gain = step / 100 + gains.get(step, 0.0)
        about = {"seed": 1000 * number + step, "consumed_tokens": step * tokens_per_step, **sizes}
        write_side(plan.step_folder(step), plan, step=step, skill=gain, nats=3 - gain, **about)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `a` is better than `b` from step 20 on; `c` saves at other steps and sees twice the tokens."""
    root = tmp_path_factory.mktemp("runs")
    write_run(root / "a", 1, gains=dict.fromkeys((20, 30, 40), 0.6))
    write_run(root / "b", 2)
    write_run(root / "c", 3, steps=(5, 10, 25), tokens_per_step=2000)
    return root


def compared(root: Path, a: str, b: str, by: By = "steps") -> StageComparison:
    sides = (find_run(name, root / name / "results") for name in (a, b))
    return compare_runs(*sides, by)[0][0]


def steps_of(stage: StageComparison) -> list[tuple[int | None, int | None]]:
    return [(match.ours.step, match.theirs.step) for match in stage.matched]


def lead_in(stage: StageComparison, key: tuple[str, str, str] = ACC) -> Lead:
    return next(lead for lead in stage.leads if lead[:3] == key)


def test_by_tokens(runs: Path) -> None:
    """Run c sees twice as many tokens a step: its steps 5, 10 meet b's 10, 20; 25 meets none."""
    stage = compared(runs, "b", "c", "tokens")
    assert steps_of(stage) == [(10, 5), (20, 10)]
    assert not any("tokens" in note for note in stage.notes)
    same = compared(runs, "b", "c")
    assert steps_of(same) == [(10, 10)]
    assert "at step 10 A has seen 10,000, B 20,000" in " ".join(same.notes)


def test_which_run_is_better_since_when(command: Command, runs: Path) -> None:
    stage = compared(runs, "a", "b")
    acc = lead_in(stage)
    assert (acc.better, acc.since, acc.checkpoints) == ("A", 20, 3)
    assert "A is better from step 20 on (3 of 4 matched checkpoints)" in acc.sentence
    nats = lead_in(stage, ("tier2", OVERALL, "delta_nats_per_token"))  # less is better
    assert (nats.better, nats.since) == ("A", 20)
    turned = lead_in(compared(runs, "b", "a"))
    assert (turned.better, turned.since) == ("B", 20)
    ended = command("compare", runs / "a/results", runs / "b/results")
    ended.check(0)
    assert acc.sentence in ended.out


def test_the_file_has_rows_of_the_long_table(command: Command, runs: Path, tmp_path: Path) -> None:
    sides = runs / "a/results", runs / "b/results"
    command("compare", *sides, "--output", tmp_path).check(0)
    found = pyarrow.csv.read_csv(tmp_path / "comparison.csv")
    assert found.column_names[: len(TABLE_COLUMNS)] == [*TABLE_COLUMNS]
    rows = found.to_pylist()
    assert {row["against"] for row in rows} == {f"{sides[1]}/second/{step}" for step in STEPS}
    for row in rows:
        assert math.isclose(row["value"] - row["against_value"], row["delta"], abs_tol=1e-9)
        assert row["low_all"] is None or row["low_all"] <= row["delta_low"]
    (stage,) = json.loads(command("compare", *sides, "--json").out)["stages"]
    assert [row["delta"] for row in stage["rows"]] == pytest.approx([row["delta"] for row in rows])


def test_exit_codes_of_runs(command: Command, runs: Path) -> None:
    a, b = runs / "a/results", runs / "b/results/second"
    assert command("compare", a, b, "--fail-on-regression").code == 0
    assert command("compare", b, a, "--fail-on-regression").code == 1
    assert command("compare", a, b, "--by", "nothing").code == 2


def test_what_cannot_be_compared_is_one_sentence_and_no_file(
    command: Command, runs: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(runs, tmp_path / "runs"))
    (folder_of(root, "b", 20) / "tier2_ppl.json").write_bytes(b"{")
    folder_of(root, "c", 10).rename(folder_of(root, "c", 15))
    (tmp_path / "empty").mkdir()
    cases = {
        root / "b/results": "step_20/tier2_ppl.json: not JSON",
        root / "c/results": "no checkpoints match by steps: A has 10 to 40 and B has 5 to 25",
        tmp_path / "empty": "empty: nothing of this run is scored",
        folder_of(root, "a", 20): "a/results: no tier files",
    }
    for other, words in cases.items():
        ended = command("compare", root / "a/results", other, "--output", tmp_path / "out")
        ended.check(1, words)
        assert (ended.out, ended.err.count("\n")) == ("", 1), ended.err
    assert not (tmp_path / "out").exists()

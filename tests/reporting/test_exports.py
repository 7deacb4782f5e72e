"""The exports: TensorBoard's files read back by its own reader, and what Weights & Biases are given."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from evaluation.errors import EvaluationError
from evaluation.reporting.sharing.curves import export_curves
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # tensorboard's own
def test_curves_are_read_back(reported: dict[str, StagePlan], tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "events.out.tfevents.1.training").write_bytes(b"")
    for _ in range(2):  # the second time replaces what the first one wrote
        number = export_curves(list(reported.values()), logs)
    assert len(list(logs.iterdir())) == 2
    found = EventAccumulator(str(logs), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    tags = found.Tags()["scalars"]
    assert "eval/first/tier2/web/ppl" in tags
    assert "eval/second/tier3/quiz/gold_bits_per_byte" in tags
    assert sum(len(found.Scalars(tag)) for tag in tags) == number
    values = expected(reported)
    for event in found.Scalars("eval/second/tier3/quiz/acc"):
        row = values["second", event.step]
        assert event.value == pytest.approx(row["eval/second/tier3/quiz/acc"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # tensorboard's own
def test_only_the_chosen_steps_are_exported(reported: dict[str, StagePlan], tmp_path: Path) -> None:
    values = expected(reported)
    chosen = min(step for _, step in values)
    number = export_curves(list(reported.values()), tmp_path, steps=[chosen])
    assert number == sum(len(values[key]) for key in values if key[1] == chosen)
    assert number < export_curves(list(reported.values()), tmp_path)


def test_what_is_lacking_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plans(tmp_path)["first"]
    with pytest.raises(EvaluationError, match="run `snakemake first"):
        export_curves([plan], tmp_path / "logs")
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EvaluationError, match="pip install tensorboard"):
        export_curves([plan], tmp_path / "logs")


def expected(plans: dict[str, StagePlan]) -> dict[tuple[str, int], dict[str, Any]]:
    """Values by stage and step, under their tags."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for plan in plans.values():
        for row in pq.read_table(plan.results / "summary.parquet").to_pylist():
            if row["role"] == "step":
                tag = f"eval/{plan.name}/{row['tier']}/{row['item']}/{row['metric']}"
                found.setdefault((plan.name, row["step"]), {})[tag] = row["value"]
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], list[Any]]]:
    """Options of each run that a stand-in for the package begins, with what it is given."""
    begun: list[tuple[dict[str, Any], list[Any]]] = []

    def init(**options: Any) -> SimpleNamespace:
        folder = Path(options["dir"]) / "wandb" / f"offline-run-{len(begun)}-{options['id']}"
        folder.mkdir(parents=True, exist_ok=True)
        logged: list[Any] = []
        begun.append((options, logged))
        return SimpleNamespace(
            define_metric=lambda name, step_metric: logged.append((name, step_metric)),
            log=logged.append,
            finish=lambda: logged.append("finished"),
        )

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, Settings=lambda **_: None))
    return begun


def test_each_stage_is_a_run_of_its_training(
    reported: dict[str, StagePlan],
    runs: list[tuple[dict[str, Any], list[Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On its axis, in its project and group; a second export replaces the first one's files."""
    second = reported["second"]
    stages = {
        n: s.model_copy(update={"command": "k=SECRET x"}) for n, s in second.config.stages.items()
    }
    plan = replace(second, config=second.config.model_copy(update={"stages": stages}))
    folder = plan.checkpoint(20)
    folder.mkdir(parents=True, exist_ok=True)
    for general in ("general: {project: ladder, run: hot}\n", "seed: 1\n"):
        (folder / "config.yaml").write_text(general)
        export_curves([plan], tmp_path, "wandb")
    (options, logged), (others, _) = runs
    assert [(one["project"], one["group"]) for one in (options, others)] == [
        ("ladder", "hot"),
        ("staged-evaluation", Path(plan.config.results).name),
    ]
    assert "SECRET" not in json.dumps(options["config"])
    axis, *rows, last = logged
    assert (axis, last) == (("eval/*", "iteration_step"), "finished")
    values = {step: row for (name, step), row in expected(reported).items() if name == "second"}
    assert [row.pop("iteration_step") for row in rows] == sorted(values)
    assert all("consumed_tokens" in row and row.pop("consumed_tokens") is None for row in rows)
    assert rows == [values[step] for step in sorted(values)]
    for name, value in (("PROJECT", "p"), ("RUN_GROUP", "g"), ("NAME", "n")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    for _ in range(2):
        export_curves(list(reported.values()), tmp_path / "named", "wandb")
    assert len(list((tmp_path / "named/wandb").iterdir())) == 2  # a stage each
    assert {(o["project"], o["group"], o["name"]) for o, _ in runs[2:]} == {("p", "g", "n")}
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(EvaluationError, match="pip install wandb"):
        export_curves([plan], tmp_path, "wandb")

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
    assert number == sum(len(values[key]) - 1 for key in values if key[1] == chosen)  # less `step`
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


def expected(plans: dict[str, StagePlan]) -> dict[tuple[str, int], dict[str, float]]:
    """Values by stage and step, under their tags."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for plan in plans.values():
        for row in pq.read_table(plan.results / "summary.parquet").to_pylist():
            if row["role"] == "step":
                tag = f"eval/{plan.name}/{row['tier']}/{row['item']}/{row['metric']}"
                own = found.setdefault((plan.name, row["step"]), {"step": row["step"]})
                own[tag] = row["value"]
    return found


def fake_wandb(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[dict[str, Any]]]:
    """What a stand-in for the package will get, and the options of the runs it will begin."""
    logged: list[Any] = []
    begun: list[dict[str, Any]] = []
    run = SimpleNamespace(
        define_metric=lambda name, step_metric: logged.append((name, step_metric)),
        log=logged.append,
        finish=lambda: logged.append("finished"),
    )

    def init(**options: Any) -> SimpleNamespace:
        folder = Path(options["dir"]) / "wandb" / f"offline-run-{len(logged)}-{options['id']}"
        folder.mkdir(parents=True)
        begun.append(options)
        return run

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, Settings=lambda **_: None))
    return logged, begun


def test_a_run_of_weights_and_biases_has_the_same_tags(
    reported: dict[str, StagePlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged, begun = fake_wandb(monkeypatch)
    for _ in range(2):  # the second time replaces what the first one wrote
        number = export_curves(list(reported.values()), tmp_path, "wandb")
    assert len(list((tmp_path / "wandb").iterdir())) == 1
    rows = list(expected(reported).values())
    assert logged == [("eval/*", "step"), *rows, "finished"] * 2
    assert number == sum(len(row) - 1 for row in rows)
    config = reported["first"].config
    first, second = ((one["mode"], one["project"], one["name"], one["id"]) for one in begun)
    assert first == second  # one run, which the second one continues
    assert first[:3] == ("offline", "staged-evaluation", Path(config.results).name)
    assert begun[0]["config"]["stages"].keys() == config.stages.keys()
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(EvaluationError, match="pip install wandb"):
        export_curves(list(reported.values()), tmp_path, "wandb")


def test_variables_of_wandb_name_the_run_and_commands_are_hidden(
    reported: dict[str, StagePlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, begun = fake_wandb(monkeypatch)
    monkeypatch.setenv("WANDB_PROJECT", "ladder")
    monkeypatch.setenv("WANDB_NAME", "hot")
    config = reported["first"].config
    stages = {n: s.model_copy(update={"command": "k=SECRET x"}) for n, s in config.stages.items()}
    given = config.model_copy(update={"stages": stages})
    plan = replace(reported["first"], config=given)
    for folder in ("here", "there"):
        export_curves([plan], tmp_path / folder, "wandb")
    assert [(one["project"], one["name"]) for one in begun] == [("ladder", "hot")] * 2
    assert begun[0]["id"] == begun[1]["id"]
    assert "SECRET" not in json.dumps(begun[0]["config"])

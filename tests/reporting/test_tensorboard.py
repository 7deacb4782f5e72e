"""The export to TensorBoard, read back by TensorBoard's own reader."""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evaluation.errors import EvaluationError
from evaluation.reporting.tables.tensorboard import export_curves
from evaluation.settings.plan import StagePlan
from tests.bridge.folders import make_plans
from tests.reporting.pages import STEPS, write_report


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # tensorboard's own
def test_curves_are_read_back(plans: dict[str, StagePlan], tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for plan, steps in ((plans["first"], (100,)), (plans["second"], STEPS)):
        write_report(plan, steps)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "events.out.tfevents.1.training").write_bytes(b"")
    for _ in range(2):  # the second time replaces what the first one wrote
        number = export_curves(list(plans.values()), logs)
    assert len(list(logs.iterdir())) == 2
    found = EventAccumulator(str(logs), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    tags = found.Tags()["scalars"]
    assert "eval/first/tier2/web/ppl" in tags
    assert "eval/second/tier3/quiz/gold_bits_per_byte" in tags
    assert sum(len(found.Scalars(tag)) for tag in tags) == number
    events = found.Scalars("eval/second/tier3/quiz/acc")
    rows = pq.read_table(plans["second"].results / "summary.parquet").to_pylist()
    stored = {
        row["step"]: row["value"]
        for row in rows
        if (row["role"], row["item"], row["metric"]) == ("step", "quiz", "acc")
    }
    assert {event.step: event.value for event in events} == pytest.approx(stored)


def test_what_is_lacking_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plans(tmp_path)["first"]
    with pytest.raises(EvaluationError, match="evaluation tables"):
        export_curves([plan], tmp_path / "logs")
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EvaluationError, match="pip install tensorboard"):
        export_curves([plan], tmp_path / "logs")

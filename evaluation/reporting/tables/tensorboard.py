"""Curves as TensorBoard's event files, to stand beside the training loss.

Tags are `eval/<stage>/<tier>/<item>/<metric>`, training steps are step numbers.
"""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluation.errors import EvaluationError
from evaluation.settings.plan import StagePlan

SUFFIX = ".staged-evaluation"
"""How our files end, so that an export anew replaces them and no others."""


def export_curves(plans: Sequence[StagePlan], output: Path) -> int:
    """Writes the values of all stages that have tables into `output`; returns how many there are.

    Raises:
        EvaluationError: tensorboard is not installed, or no stage has tables yet.
    """
    writer_of = _writer()
    rows = [row for plan in plans for row in _rows(plan)]
    if not rows:
        names = ", ".join(plan.name for plan in plans)
        raise EvaluationError(f"no tables of {names} yet; run `python -m evaluation tables` first")
    for old in output.glob(f"events.out.tfevents.*{SUFFIX}"):
        old.unlink()
    with writer_of(str(output), filename_suffix=SUFFIX) as writer:
        for row in rows:
            tag = "/".join(("eval", *(row[key] for key in ("stage", "tier", "item", "metric"))))
            writer.add_scalar(tag, row["value"], row["step"])
    return len(rows)


def _rows(plan: StagePlan) -> Iterable[dict[str, Any]]:
    path = plan.results / "summary.parquet"
    if not path.exists():
        return []
    rows = pq.read_table(path, columns=["role", "stage", "step", "tier", "item", "metric", "value"])
    return [row for row in rows.to_pylist() if row["role"] == "step"]


def _writer() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # not ours
            from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        raise EvaluationError(
            f"the export needs a package that is not installed ({error.name}); run "
            "`pip install tensorboard`"
        ) from None
    return SummaryWriter

"""Curves as TensorBoard's event files, to stand beside the training loss.

Tags are `eval/<stage>/<tier>/<item>/<metric>`, training steps are step numbers.
"""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.results.bridge_files import SUMMARY, read_summary
from evaluation.settings.plan import StagePlan

SUFFIX = ".staged-evaluation"
"""How our files end, so that an export anew replaces them and no others."""


def export_curves(plans: Sequence[StagePlan], output: Path) -> int:
    """Writes the values of all stages that have tables into `output`; returns how many there are.

    Raises:
        EvaluationError: tensorboard is not installed, or no stage has tables yet.
        ResultsError: a stage's table is damaged.
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
    path = plan.results / SUMMARY
    if not path.exists():
        return []
    return [row for row in read_summary(path) if row["role"] == "step"]


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

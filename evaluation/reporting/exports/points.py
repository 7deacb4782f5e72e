"""Curves for the tools that show the training loss, beside which they are to stand.

Tags are `eval/<stage>/<tier>/<item>/<metric>` in all of them, training steps are step numbers.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evaluation.command_hints import snakemake
from evaluation.errors import EvaluationError
from evaluation.reporting.exports.tensorboard import event_writer
from evaluation.reporting.exports.weights_and_biases import run_writer
from evaluation.results.stage_files import SUMMARY, read_summary
from evaluation.settings.plan import StagePlan

Tool = Literal["tensorboard", "wandb"]


class Point(NamedTuple):
    """A value that is shown under a tag at a training step."""

    tag: str
    step: int
    value: float


def export_curves(plans: Sequence[StagePlan], output: Path, tool: Tool = "tensorboard") -> int:
    """Writes the values of all stages that have tables into `output`; returns how many there are.

    Raises:
        EvaluationError: the tool's package is not installed, or no stage has tables yet.
        ResultsError: a stage's table is damaged.
    """
    write = event_writer() if tool == "tensorboard" else run_writer(plans[0].config)
    points = [point for plan in plans for point in _points(plan)]
    if not points:
        names = ", ".join(plan.name for plan in plans)
        raise EvaluationError(f"no tables of {names} yet; run `{snakemake(plans[0].name)}` first")
    write(points, output)
    return len(points)


def _points(plan: StagePlan) -> Iterator[Point]:
    path = plan.results / SUMMARY
    rows: list[dict[str, Any]] = read_summary(path) if path.exists() else []
    for row in rows:
        if row["role"] == "step":
            tag = "/".join(("eval", *(row[key] for key in ("stage", "tier", "item", "metric"))))
            yield Point(tag, row["step"], row["value"])

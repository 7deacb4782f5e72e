"""Curves as an offline run of Weights & Biases, which `wandb sync` sends where there is a network."""

import importlib
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.files import fingerprint

PROJECT = "staged-evaluation"
STEP = "step"
"""What curves are drawn over: stages begin anew, and a run's own count never goes back."""


def run_writer() -> Callable[[Sequence[tuple[str, int, float]], Path], None]:
    """Writes tags, steps and values as one run; raises EvaluationError where wandb is not installed.

    An earlier export into the folder is replaced.
    """
    return partial(_write, _package())


def _write(wandb: Any, points: Sequence[tuple[str, int, float]], output: Path) -> None:
    name = f"eval-{fingerprint(str(output.resolve()))[:12]}"
    for old in (output / "wandb").glob(f"offline-run-*-{name}"):
        shutil.rmtree(old)
    output.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(silent=True, console="off", x_disable_stats=True)
    run = wandb.init(
        mode="offline",
        dir=str(output),
        project=PROJECT,
        id=name,
        name="evaluation",
        resume="allow",
        settings=settings,
    )
    run.define_metric("eval/*", step_metric=STEP)
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for tag, step, value in points:
        rows.setdefault((tag.split("/")[1], step), {STEP: step})[tag] = value
    for row in rows.values():
        run.log(row)
    run.finish()


def _package() -> Any:
    try:
        return importlib.import_module("wandb")
    except ModuleNotFoundError as error:
        raise EvaluationError(
            f"the export needs a package that is not installed ({error.name}); run "
            "`pip install wandb`"
        ) from None

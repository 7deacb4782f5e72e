"""Curves as an offline run of Weights & Biases, which `wandb sync` sends where there is a network."""

import importlib
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.files import fingerprint
from evaluation.settings.config import Config

STEP = "step"
"""What curves are drawn over: stages begin anew, and a run's own count never goes back."""

Points = Sequence[tuple[str, int, float]]


def run_writer(config: Config) -> Callable[[Points, Path], None]:
    """Writes tags, steps and values as the run that `config` names; what was there is replaced.

    Raises EvaluationError where wandb is not installed.
    """
    return partial(_write, _package(), config)


def _write(wandb: Any, config: Config, points: Points, output: Path) -> None:
    told = config.weights_and_biases
    results = Path(config.results).resolve()
    name = told.run or results.name
    number = f"eval-{fingerprint([told.project, name, str(results)])[:12]}"
    for old in (output / "wandb").glob(f"offline-run-*-{number}"):
        shutil.rmtree(old)
    output.mkdir(parents=True, exist_ok=True)
    run = wandb.init(
        mode="offline",
        dir=str(output),
        project=told.project,
        id=number,  # of the run, wherever it is exported to: sent again it is still one run
        name=name,
        config=_shown(config),
        resume="allow",
        settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
    )
    run.define_metric("eval/*", step_metric=STEP)
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for tag, step, value in points:
        rows.setdefault((tag.split("/")[1], step), {STEP: step})[tag] = value
    for row in rows.values():
        run.log(row)
    run.finish()


def _shown(config: Config) -> dict[str, Any]:
    """The configuration; of a command, which may hold secrets, only a fingerprint."""
    shown = config.model_dump(mode="json")
    for stage in shown["stages"].values():
        if stage["command"] is not None:
            stage["command"] = f"fingerprint {fingerprint(stage['command'])[:12]}"
    return shown


def _package() -> Any:
    try:
        return importlib.import_module("wandb")
    except ModuleNotFoundError as error:
        raise EvaluationError(
            f"the export needs a package that is not installed ({error.name}); run "
            "`pip install wandb`"
        ) from None

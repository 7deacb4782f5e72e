"""Export curves to TensorBoard and Weights & Biases, to show them next to the training loss.

Tags are `eval/<stage>/<tier>/<item>/<metric>` in both, training steps are step numbers. TensorBoard reads
event files; Weights & Biases gets an offline run, which `wandb sync` sends where there is a network.
"""

import importlib
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import ConfigError, EvaluationError
from evaluation.files import fingerprint
from evaluation.results.table import SUMMARY, read_rows
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan

Tool = Literal["tensorboard", "wandb"]

SUFFIX = ".staged-evaluation"
"""Suffix of our event files, by which a new export replaces them and no others."""

STEP = "step"
"""The x-axis in Weights & Biases, whose built-in step cannot begin anew in each stage."""

Row = Mapping[str, Any]
Steps = Sequence[int] | None
Point = tuple[str, int, float]
"""Tag, training step and value."""


def export_curves(
    plans: Sequence[StagePlan], output: Path, tool: Tool = "tensorboard", steps: Steps = ()
) -> int:
    """Write the values of all stages that have tables; return their number.

    Raises:
        EvaluationError: The tool's package is not installed, or `values_of_steps` raises it.
    """
    package, keys = _package(tool), ("stage", "tier", "item", "metric")
    points = [
        ("/".join(("eval", *(row[key] for key in keys))), row["step"], row["value"])
        for _, row in values_of_steps(plans, steps)
    ]
    if tool == "tensorboard":
        _write_events(package, points, output)
    else:
        _write_run(package, plans[0].config, points, output)
    return len(points)


def values_of_steps(plans: Sequence[StagePlan], steps: Steps) -> list[tuple[StagePlan, Row]]:
    """Return the summaries' rows on some steps, or all, with their stages; each stage's steps are together.

    Raises:
        EvaluationError: No stage has tables yet, a table is damaged, or no stage has one of the steps.
    """
    paths = [(plan, plan.results / SUMMARY) for plan in plans]
    known = [(plan, row) for plan, path in paths if path.exists() for row in read_rows(path)]
    names = ", ".join(plan.name for plan in plans)
    if not known:
        raise EvaluationError(f"no tables of {names} yet; run `snakemake {plans[0].name}` first")
    rows = [(plan, row) for plan, row in known if row["role"] == "step"]
    if lacking := set(steps or ()).difference(row["step"] for _, row in rows):
        raise ConfigError(
            f"--step {min(lacking)}: no results of this step in {names}; leave it out"
        )
    return [(plan, row) for plan, row in rows if not steps or row["step"] in steps]


def _package(tool: Tool) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the package
            name = "wandb" if tool == "wandb" else "torch.utils.tensorboard"
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise EvaluationError(
            f"the export needs {error.name}, which is not installed; run `pip install {tool}`"
        ) from None


def _write_events(package: Any, points: Sequence[Point], output: Path) -> None:
    for old in output.glob(f"events.out.tfevents.*{SUFFIX}"):
        old.unlink()
    with package.SummaryWriter(str(output), filename_suffix=SUFFIX) as writer:
        for tag, step, value in points:
            writer.add_scalar(tag, value, step)


def _write_run(wandb: Any, config: Config, points: Sequence[Point], output: Path) -> None:
    """Write the run that wandb's own variables name, without stages' commands, which may hold secrets."""
    results = Path(config.results).resolve()
    project = os.environ.get("WANDB_PROJECT") or "staged-evaluation"
    name = os.environ.get("WANDB_NAME") or results.name
    number = f"eval-{fingerprint([project, name, str(results)])[:12]}"
    for old in (output / "wandb").glob(f"offline-run-*-{number}"):
        shutil.rmtree(old)
    output.mkdir(parents=True, exist_ok=True)
    run = wandb.init(
        mode="offline",
        dir=str(output),
        project=project,
        id=number,  # the same for every export of a run, so that it is synced as one run
        name=name,
        config=config.model_dump(mode="json", exclude={"stages": {"__all__": {"command"}}}),
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

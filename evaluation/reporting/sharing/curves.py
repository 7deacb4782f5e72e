"""Export curves to TensorBoard and Weights & Biases, to show them next to the training loss.

Tags are `eval/<stage>/<tier>/<item>/<metric>` in both, training steps are step numbers. TensorBoard reads
event files; Weights & Biases gets an offline run a stage, on the axis and in the project and group of its
training, which `wandb sync` sends where there is a network.
"""

import importlib
import os
import shutil
import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from evaluation.checkpoints.config_files import read_table
from evaluation.errors import ConfigError, EvaluationError
from evaluation.files import fingerprint
from evaluation.results.table import SUMMARY, read_rows
from evaluation.settings.plan import StagePlan

Tool = Literal["tensorboard", "wandb"]

SUFFIX = ".staged-evaluation"
"""Suffix of our event files, by which a new export replaces them and no others."""

STEP = "iteration_step"
"""The x-axis in Weights & Biases, as Nanotron names it; the built-in step cannot begin anew in each stage."""

Row = Mapping[str, Any]
_step = itemgetter("step")


def export_curves(
    plans: Sequence[StagePlan],
    output: Path,
    tool: Tool = "tensorboard",
    steps: Collection[int] | None = None,
) -> int:
    """Write the values of some steps, or all, of all stages that have tables; return their number.

    Raises:
        EvaluationError: The tool's package is not installed, no stage has tables yet, a table is damaged,
            or no stage has one of the steps.
    """
    package, names = _package(tool), ", ".join(plan.name for plan in plans)
    paths = {plan.name: plan.results / SUMMARY for plan in plans}
    tables = {name: read_rows(path) for name, path in paths.items() if path.exists()}
    if not tables:
        raise EvaluationError(f"no tables of {names} yet; run `snakemake {plans[0].name}` first")
    every = [row for rows in tables.values() for row in rows if row["role"] == "step"]
    every = [row for row in every if row["position"] is None]
    if lacking := set(steps or ()).difference(row["step"] for row in every):
        raise ConfigError(
            f"--step {min(lacking)}: no results of this step in {names}; leave it out"
        )
    rows = [row for row in every if not steps or row["step"] in steps]
    if tool == "tensorboard":
        _write_events(package, rows, output)
        return len(rows)
    for plan in plans:
        if own := [row for row in rows if row["stage"] == plan.name]:
            _write_run(package, plan, own, output)
    return len(rows)


def _tag(row: Row) -> str:
    return "/".join(("eval", *(row[key] for key in ("stage", "tier", "item", "metric"))))


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


def _write_events(package: Any, rows: Sequence[Row], output: Path) -> None:
    for old in output.glob(f"events.out.tfevents.*{SUFFIX}"):
        old.unlink()
    with package.SummaryWriter(str(output), filename_suffix=SUFFIX) as writer:
        for row in rows:
            writer.add_scalar(_tag(row), row["value"], row["step"])


def _write_run(wandb: Any, plan: StagePlan, rows: Sequence[Row], output: Path) -> None:
    """Write a stage's run into its training's project and group, or those that wandb's variables name.

    Stages' commands, which may hold secrets, are left out.
    """
    results = Path(plan.config.results).resolve()
    training = _training(plan, {row["step"] for row in rows})
    project = os.environ.get("WANDB_PROJECT") or training.get("project") or "staged-evaluation"
    group = os.environ.get("WANDB_RUN_GROUP") or training.get("run") or results.name
    number = f"eval-{fingerprint([project, str(plan.results.resolve())])[:12]}"
    for old in (output / "wandb").glob(f"offline-run-*-{number}"):
        shutil.rmtree(old)
    output.mkdir(parents=True, exist_ok=True)
    run = wandb.init(
        mode="offline",
        dir=str(output),
        project=project,
        group=group,
        job_type="evaluation",
        id=number,  # the same for every export of a stage, so that it is synced as one run
        name=os.environ.get("WANDB_NAME") or f"{results.name} {plan.name}",
        config=plan.config.model_dump(mode="json", exclude={"stages": {"__all__": {"command"}}}),
        resume="allow",
        settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
    )
    run.define_metric("eval/*", step_metric=STEP)
    for step, of_step in groupby(sorted(rows, key=_step), key=_step):
        own = [*of_step]
        about = {STEP: step, "consumed_tokens": own[0]["tokens"]}
        run.log(about | {_tag(row): row["value"] for row in own})
    run.finish()


def _training(plan: StagePlan, steps: Collection[int]) -> Mapping[str, Any]:
    """Return `general` of the training's configuration: its project and run; empty if no step has it."""
    paths = [plan.checkpoint(step) / "config.yaml" for step in sorted(steps)]
    path = next(filter(Path.is_file, paths), None)
    general = read_table(path).get("general") if path else None
    return general if isinstance(general, dict) else {}

"""Export curves to TensorBoard and Weights & Biases, to show them next to the training loss.

Tags are `eval/<stage>/<tier>/<item>/<metric>` in all of them, training steps are step numbers.
TensorBoard reads event files; Weights & Biases gets an offline run, which `wandb sync` sends where
there is a network.
"""

import importlib
import shutil
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import EvaluationError
from evaluation.fingerprints import fingerprint
from evaluation.results.stage_files import SUMMARY, read_summary
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan

Tool = Literal["tensorboard", "wandb"]

SUFFIX = ".staged-evaluation"
"""Suffix of our event files, by which a new export replaces them and no others."""

STEP = "step"
"""The x-axis in Weights & Biases, whose built-in step cannot begin anew in each stage."""

Point = tuple[str, int, float]
"""Tag, training step and value."""


def export_curves(
    plans: Sequence[StagePlan],
    output: Path,
    tool: Tool = "tensorboard",
    steps: Collection[int] | None = None,
) -> int:
    """Write the values of all stages that have tables for a tool that shows curves; return their number.

    Args:
        output: Folder for the files; what an earlier export left there is replaced.
        steps: Only these; all by default.

    Raises:
        EvaluationError: The tool's package is not installed, or no stage has tables yet.
        ResultsError: A stage's table is damaged.
    """
    package = _package(tool)
    points = [point for plan in plans for point in _points(plan) if not steps or point[1] in steps]
    if not points:
        names = ", ".join(plan.name for plan in plans)
        raise EvaluationError(f"no tables of {names} yet; run `snakemake {plans[0].name}` first")
    if tool == "tensorboard":
        _write_events(package, points, output)
    else:
        _write_run(package, plans[0].config, points, output)
    return len(points)


def _package(tool: Tool) -> Any:
    """Import the tool's package; raise EvaluationError where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the package
            return importlib.import_module(
                "wandb" if tool == "wandb" else "torch.utils.tensorboard"
            )
    except ModuleNotFoundError as error:
        raise EvaluationError(
            f"the export needs a package that is not installed ({error.name}); run "
            f"`pip install {tool}`"
        ) from None


def _points(plan: StagePlan) -> Iterator[Point]:
    path = plan.results / SUMMARY
    for row in read_summary(path) if path.exists() else ():
        if row["role"] == "step":
            tag = "/".join(("eval", *(row[key] for key in ("stage", "tier", "item", "metric"))))
            yield tag, row["step"], row["value"]


def _write_events(package: Any, points: Sequence[Point], output: Path) -> None:
    for old in output.glob(f"events.out.tfevents.*{SUFFIX}"):
        old.unlink()
    with package.SummaryWriter(str(output), filename_suffix=SUFFIX) as writer:
        for tag, step, value in points:
            writer.add_scalar(tag, value, step)


def _write_run(wandb: Any, config: Config, points: Sequence[Point], output: Path) -> None:
    """Write the run that `config` names; an earlier export of it is replaced."""
    settings = config.weights_and_biases
    results = Path(config.results).resolve()
    name = settings.run or results.name
    number = f"eval-{fingerprint([settings.project, name, str(results)])[:12]}"
    for old in (output / "wandb").glob(f"offline-run-*-{number}"):
        shutil.rmtree(old)
    output.mkdir(parents=True, exist_ok=True)
    run = wandb.init(
        mode="offline",
        dir=str(output),
        project=settings.project,
        id=number,  # the same for every export of a run, so that it is synced as one run
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
    """Return the configuration; of a command, which may hold secrets, only a fingerprint."""
    shown = config.model_dump(mode="json")
    for stage in shown["stages"].values():
        if stage["command"] is not None:
            stage["command"] = f"fingerprint {fingerprint(stage['command'])[:12]}"
    return shown

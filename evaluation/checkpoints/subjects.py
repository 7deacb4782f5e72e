"""Which checkpoints a stage evaluates: its steps on disk, and its bridge."""

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.errors import CheckpointError, ConfigError, first_few
from evaluation.settings.checkpoint_folders import ListedCheckpoint, named_steps
from evaluation.settings.plan import StagePlan
from evaluation.settings.requested_steps import StepInterval, Steps, is_requested
from evaluation.settings.steps import step_of_folder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Subject:
    """A checkpoint that a stage scores, and the folder of its results."""

    plan: StagePlan
    checkpoint: Path
    step: int | None
    """The step of its folder, also of a bridge; None if the folder's name has none."""
    role: Literal["step", "bridge"]
    folder: Path

    @property
    def own_step(self) -> int | None:
        """Which step of the stage it is; None for the bridge."""
        return self.step if self.role == "step" else None

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.plan.label(self.own_step)

    @property
    def log(self) -> Path:
        """Log of the job that scores it."""
        return self.plan.score_log(self.own_step)

    def open(self) -> Checkpoint:
        """Open the checkpoint; raise as `open_checkpoint`.

        The stage's `use_mup` is for the engine: a stage's own command reads what it needs.
        """
        assumed = None if self.plan.stage.command else self.plan.stage.assume
        use_mup = assumed.use_mup if assumed else None
        return open_checkpoint(self.checkpoint, use_mup=use_mup)


def find_steps(
    folder: Path, steps: Steps, listed: Sequence[ListedCheckpoint] = ()
) -> tuple[int, ...]:
    """Return the requested steps: a list unchanged, for `all` and `every: N` those on disk, ascending.

    A step counts once its configuration exists, which trainers write after the weights. None is looked
    for if the stage's checkpoints are `listed`.

    Raises:
        CheckpointError: Two folders are one step, or `all` or `every: N` finds none.
    """
    on_disk = {one.step for one in listed}
    if not listed and folder.is_dir():
        on_disk = _steps_on_disk(folder, steps)
    if isinstance(steps, tuple):
        return steps
    requested = tuple(sorted(step for step in on_disk if is_requested(step, steps)))
    if not requested:
        of = f" that is a multiple of {steps.every}" if isinstance(steps, StepInterval) else ""
        seen = first_few([*sorted(p.name for p in folder.glob("*")), "no other folder"])
        raise CheckpointError(
            f"{folder}: no such folder, or it holds no step{of}, but {seen}; check `checkpoints` and "
            f"`steps`, {_LISTED}"
        )
    return requested


_LISTED = "or list checkpoints of other names (`checkpoints: [{path: …, step: …}]`)"


def _steps_on_disk(folder: Path, steps: Steps) -> set[int]:
    """Return the steps of checkpoints in a folder; for `all` log which others look like some."""
    names: dict[int, str] = {}
    named = [*named_steps(folder)]
    for step, name in named:
        if (isinstance(steps, tuple) and step not in steps) or not _is_checkpoint(folder / name):
            continue
        other = names.setdefault(step, name)
        if (folder / other).resolve() != (folder / name).resolve():
            raise CheckpointError(
                f"{folder}: {other} and {name} are both step {step}; rename one, {_LISTED}"
            )
    if not isinstance(steps, tuple):
        others = sorted(path.name for path in folder.iterdir())
        taken = {name for _, name in named}
        left = [name for name in others if name not in taken and _is_checkpoint(folder / name)]
        _warn_of_left_out(folder, first_few(left, 8) if left else "")
    return {*names}


@functools.cache
def _warn_of_left_out(folder: Path, names: str) -> None:
    if names:
        log.warning(
            "%s: not evaluated, as their names have no step, or one that another folder has: %s; rename "
            "them, %s", folder, names, _LISTED,
        )  # fmt: skip


def _is_checkpoint(path: Path) -> bool:
    nanotron = (path / "model").is_dir() and configuration_file(path)
    return bool(nanotron) or (path / "config.json").is_file()


def stage_steps(plan: StagePlan) -> tuple[int, ...]:
    """Return the stage's steps; `all` and `every: N` are looked up on disk. Raise like `find_steps`."""
    return find_steps(Path(plan.stage.checkpoints), plan.stage.steps, plan.stage.listed)


def steps_so_far(plan: StagePlan) -> tuple[int, ...]:
    """Return the stage's steps; none where `find_steps` raises an error, as without a checkpoint."""
    try:
        return stage_steps(plan)
    except CheckpointError:
        return ()


def stage_subjects(plan: StagePlan, plans: Mapping[str, StagePlan]) -> list[Subject]:
    """Return a stage's checkpoints: steps in order, and the bridge, maybe of another stage."""
    subjects = [step_subject(plan, step) for step in stage_steps(plan)]
    return subjects if plan.stage.bridge is None else [*subjects, bridge_subject(plan, plans)]


def step_subject(plan: StagePlan, step: int) -> Subject:
    """Return a step of a stage, which need not be on disk."""
    return Subject(plan, plan.checkpoint(step), step, "step", plan.step_folder(step))


def bridge_subject(plan: StagePlan, plans: Mapping[str, StagePlan]) -> Subject:
    """Return the checkpoint that a stage is compared with, which may be another stage's step."""
    bridge = plan.stage.bridge
    if bridge is None:
        raise ConfigError(
            f"stages.{plan.name}.bridge: none is configured; name a `stage` or a `path` there"
        )
    if bridge.stage is None:
        path = Path(bridge.path or "")
        step = step_of_folder(path.name)
    else:
        owner = plans[bridge.stage]
        steps: Steps = owner.stage.steps if bridge.step is None else (bridge.step,)
        step = find_steps(Path(owner.stage.checkpoints), steps, owner.stage.listed)[-1]
        path = owner.checkpoint(step)
    if path.resolve() in {plan.checkpoint(step).resolve() for step in stage_steps(plan)}:
        raise ConfigError(
            f"stages.{plan.name}.bridge: {path} is also a step of {plan.name}, so its delta would "
            "be zero by construction; take it out of `steps` or choose another bridge"
        )
    return Subject(plan, path, step, "bridge", plan.bridge_folder)

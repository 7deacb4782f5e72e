"""Which checkpoints a stage evaluates: its steps, and its bridge."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluation.checkpoints.discovery import find_steps
from evaluation.errors import CheckpointError, ConfigError
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import step_named


@dataclass(frozen=True)
class BridgeCheckpoint:
    """The checkpoint that a stage is measured against."""

    path: Path
    step: int | None
    label: str


@dataclass(frozen=True)
class Subject:
    """A checkpoint that a stage scores: where it lies, and where its results go."""

    plan: StagePlan
    checkpoint: Path
    step: int | None
    role: Literal["step", "bridge"]
    folder: Path

    @property
    def label(self) -> str:
        return "bridge" if self.role == "bridge" else f"step {self.step}"

    @property
    def log(self) -> Path:
        """Log of the job that scores it."""
        if self.role == "bridge" or self.step is None:
            return self.plan.bridge_log
        return self.plan.step_log(self.step)


def stage_steps(plan: StagePlan) -> tuple[int, ...]:
    """The stage's steps in order; `all` and `every: N` are looked up on disk."""
    return find_steps(Path(plan.stage.checkpoints), plan.stage.steps)


def steps_so_far(plan: StagePlan) -> tuple[int, ...]:
    """The stage's steps; none as long as there is no checkpoint."""
    try:
        return stage_steps(plan)
    except CheckpointError:
        return ()


def step_subject(plan: StagePlan, step: int) -> Subject:
    return Subject(plan, plan.checkpoint(step), step, "step", plan.step_folder(step))


def bridge_subject(plan: StagePlan, plans: Mapping[str, StagePlan]) -> Subject:
    """Raises ConfigError like `bridge_checkpoint`."""
    bridge = bridge_checkpoint(plan, plans)
    return Subject(plan, bridge.path, bridge.step, "bridge", plan.bridge_folder)


def stage_subjects(plan: StagePlan, plans: Mapping[str, StagePlan]) -> list[Subject]:
    """All checkpoints of a stage, the bridge last; raises ConfigError or CheckpointError."""
    steps = [step_subject(plan, step) for step in stage_steps(plan)]
    return steps if plan.stage.bridge is None else [*steps, bridge_subject(plan, plans)]


def bridge_checkpoint(plan: StagePlan, plans: Mapping[str, StagePlan]) -> BridgeCheckpoint:
    """Resolves a stage's bridge.

    Raises:
        ConfigError: if the stage has none, or if it is one of the stage's own checkpoints.
    """
    bridge = plan.stage.bridge
    if bridge is None:
        raise ConfigError(
            f"stages.{plan.name}.bridge: none is configured; name a `stage` or a `path` there"
        )
    if bridge.stage is None:
        path = Path(bridge.path or "")
        found = BridgeCheckpoint(path, step_named(path.name), str(path))
    else:
        owner = plans[bridge.stage]
        step = bridge.step if bridge.step is not None else stage_steps(owner)[-1]
        found = BridgeCheckpoint(owner.checkpoint(step), step, f"{bridge.stage} / {step}")
    folder = Path(plan.stage.checkpoints).resolve()
    if found.path.resolve().parent == folder and found.step in stage_steps(plan):
        raise ConfigError(
            f"stages.{plan.name}.bridge: {found.path} is also a step of {plan.name}, so its delta would "
            "be zero by construction; take it out of `steps` or choose another bridge"
        )
    return found

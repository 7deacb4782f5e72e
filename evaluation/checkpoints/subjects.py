"""Which checkpoints a stage evaluates: its steps, and its bridge."""

from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.discovery import find_steps
from evaluation.errors import ConfigError
from evaluation.settings.plan import StagePlan


@dataclass(frozen=True)
class BridgeCheckpoint:
    """The checkpoint that a stage is measured against."""

    path: Path
    step: int | None
    label: str


def stage_steps(plan: StagePlan) -> tuple[int, ...]:
    """The stage's steps in order; `all` and `every: N` are looked up on disk."""
    return find_steps(Path(plan.stage.checkpoints), plan.stage.steps)


def bridge_checkpoint(plan: StagePlan, plans: dict[str, StagePlan]) -> BridgeCheckpoint:
    """Resolves a stage's bridge.

    Raises:
        ConfigError: if the stage has none, or if it is one of the stage's own checkpoints.
    """
    bridge = plan.stage.bridge
    if bridge is None:
        raise ConfigError(f"stages.{plan.name}.bridge: none is configured")
    if bridge.stage is None:
        path = Path(bridge.path or "")
        found = BridgeCheckpoint(path, int(path.name) if path.name.isdigit() else None, str(path))
    else:
        owner = plans[bridge.stage]
        step = bridge.step if bridge.step is not None else stage_steps(owner)[-1]
        found = BridgeCheckpoint(owner.checkpoint(step), step, f"{bridge.stage} / {step}")
    folder = Path(plan.stage.checkpoints).absolute()
    if found.path.absolute().parent == folder and found.step in stage_steps(plan):
        raise ConfigError(
            f"stages.{plan.name}.bridge: {found.path} is also a step of {plan.name}, so its delta would "
            "be zero by construction; take it out of `steps` or choose another bridge"
        )
    return found

"""Where outputs are: each place is a folder that has the outputs of a checkpoint, a stage or the run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    step_subject,
    steps_so_far,
)
from evaluation.settings.plan import StagePlan

Plans = Mapping[str, StagePlan]
"""All stages of a run by name."""


@dataclass(frozen=True)
class Place:
    """A folder of outputs: its stage's plan, or those of all stages, and which checkpoint's it is."""

    folder: Path
    plans: tuple[StagePlan, ...]
    step: int | None = None
    """The step; None for a bridge, a stage or a run."""
    find: Callable[[], Subject] | None = field(default=None, compare=False)

    @property
    def plan(self) -> StagePlan:
        """The stage's plan; for a run that of its first stage."""
        return self.plans[0]

    @property
    def subject(self) -> Subject:
        """The checkpoint; raises ConfigError or CheckpointError for a bridge that cannot be resolved."""
        assert self.find is not None
        return self.find()

    @property
    def is_bridge(self) -> bool:
        """Whether it has the results of a stage's bridge."""
        return self.find is not None and self.step is None

    @property
    def label(self) -> str:
        """The checkpoint's name in messages."""
        return self.plan.label(self.step)


Target = Place | Subject | StagePlan | Plans
"""What a step is made for: a place, or the checkpoint, stage or stages that it belongs to."""


def place_of(target: Target) -> Place:
    """Return the place of a checkpoint, a stage or all stages."""
    if isinstance(target, Place):
        return target
    if isinstance(target, Subject):
        return Place(target.folder, (target.plan,), target.own_step, lambda: target)
    if isinstance(target, StagePlan):
        return Place(target.results, (target,))
    plans = tuple(target.values())
    return Place(Path(plans[0].config.results), plans)


def step_places(plan: StagePlan) -> list[Place]:
    """Return the places of a stage's steps, in order."""
    return [
        Place(plan.step_folder(step), (plan,), step, partial(step_subject, plan, step))
        for step in steps_so_far(plan)
    ]


def bridge_places(plan: StagePlan, plans: Plans) -> list[Place]:
    """Return the place of a stage's bridge, which is resolved when its checkpoint is needed; none without."""
    if plan.stage.bridge is None:
        return []
    return [Place(plan.bridge_folder, (plan,), None, partial(bridge_subject, plan, plans))]


def checkpoint_places(plan: StagePlan, plans: Plans) -> list[Place]:
    """Return the places of a stage's checkpoints: its steps, and its bridge."""
    return [*step_places(plan), *bridge_places(plan, plans)]

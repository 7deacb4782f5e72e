"""What is to be evaluated now: which checkpoints are new, complete and quiet.

A run of Snakemake gets the configuration with these steps alone, so that it never meets a checkpoint
that is still being written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.state import folder_state
from evaluation.checkpoints.subjects import Subject, bridge_subject, stage_steps, step_subject
from evaluation.command_hints import snakemake
from evaluation.dependencies.caches import CacheStates, stage_entries
from evaluation.dependencies.known_steps import with_known_steps
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import COLLECT, STEP_DELTAS
from evaluation.errors import CacheError, CheckpointError, EvaluationError
from evaluation.records import record_path
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan, plan_stages
from evaluation.watching.attempts import read_failures
from evaluation.watching.readiness import Look, look_at
from evaluation.wording import first_few


@dataclass(kw_only=True)
class Work:
    """What a look at the disk found; `plans` are of `config`, which has only steps to evaluate.

    `left_alone` has a reason for each checkpoint, or stage, that is not evaluated now.
    """

    config: Config
    plans: Mapping[str, StagePlan]
    ready: tuple[Subject, ...] = ()
    states: dict[Path, str] = field(default_factory=dict)
    evaluated: dict[str, tuple[int, ...]] = field(default_factory=dict)
    left_alone: dict[str, str] = field(default_factory=dict)
    seen: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def targets(self) -> list[str]:
        """The records that Snakemake is to make: of results, and of deltas where there is a bridge."""
        found = []
        for subject in self.ready:
            found.append(record_path(subject.folder, COLLECT))
            if subject.role == "step" and self.is_compared(subject.plan.name):
                found.append(record_path(subject.folder, STEP_DELTAS))
        return [str(path) for path in found]

    def is_compared(self, stage: str) -> bool:
        """Whether the stage has a bridge that can be compared with now."""
        return self.plans[stage].stage.bridge is not None and name_of(stage) not in self.left_alone


def name_of(stage: str, label: str = "bridge") -> str:
    return f"{stage} {label}"


def check_caches(plan: StagePlan) -> None:
    """Raises CacheError where something is not prefilled, or was from other data or settings."""
    states = CacheStates()
    wrong = [entry for entry in stage_entries(plan) if states.state(entry) != "current"]
    if wrong:
        named = first_few([f"{entry.kind} {entry.name}" for entry in wrong], 4)
        raise CacheError(
            f"{plan.name}: not prefilled, or not as it is configured now: {named}; run "
            f"`{snakemake('prefill')}` on a machine with internet, with this configuration"
        )


def find_work(config: Config, stages: Sequence[str], quiet: float) -> Work:
    """Looks at all checkpoints of these stages, at those that are not evaluated twice."""
    plans = plan_stages(with_known_steps(config))
    outdated = Outdated(plans)
    left: dict[str, str] = {}
    known = {name: _known_steps(plans[name], left) for name in stages}
    wanted = [s for name in stages if known[name] for s in _wanted(plans[name], outdated, left)]
    looks = _looks(wanted, outdated, quiet, left)
    ready = [subject for subject in wanted if _is_possible(subject, outdated, left)]
    to_score = {subject.folder for subject in ready}
    steps = {
        name: tuple(
            step
            for step in known[name]
            if (one := step_subject(plans[name], step)).folder in to_score
            or not outdated.score(one)
        )
        for name in stages
    }
    limited = with_steps(next(iter(plans.values())).config, steps)
    evaluated = {
        name: tuple(s for s in known[name] if _is_evaluated(plans[name], s, outdated, left))
        for name in stages
    }
    return Work(
        config=limited,
        plans=plan_stages(limited),
        ready=tuple(ready),
        states={folder: look.state for folder, look in looks.items()},
        evaluated=evaluated,
        left_alone=left,
        seen={name: _on_disk(plans[name], steps) for name, steps in known.items()},
    )


def with_steps(config: Config, steps: Mapping[str, tuple[int, ...]]) -> Config:
    """The configuration with these steps; a stage that has none keeps its own."""
    stages = {
        name: stage.model_copy(update={"steps": steps[name]}) if steps.get(name) else stage
        for name, stage in config.stages.items()
    }
    return config.model_copy(update={"stages": stages})


def _known_steps(plan: StagePlan, left: dict[str, str]) -> tuple[int, ...]:
    try:
        return stage_steps(plan)
    except CheckpointError as error:
        left[plan.name] = str(error)
        return ()


def _on_disk(plan: StagePlan, steps: Sequence[int]) -> tuple[int, ...]:
    return tuple(step for step in steps if configuration_file(plan.checkpoint(step)))


def _wanted(plan: StagePlan, outdated: Outdated, left: dict[str, str]) -> Iterator[Subject]:
    """The checkpoints of which something is missing, the bridge first."""
    has_bridge = plan.stage.bridge is not None
    steps = plan.stage.steps if isinstance(plan.stage.steps, tuple) else ()
    outdated.look_at(step_subject(plan, step) for step in steps)
    if has_bridge:
        try:
            bridge = bridge_subject(plan, outdated.plans)
        except EvaluationError as error:
            left[name_of(plan.name)], has_bridge = str(error), False
        else:
            if outdated.collect(bridge):
                yield bridge
    for step in steps:
        subject = step_subject(plan, step)
        if outdated.score(subject) and not configuration_file(subject.checkpoint):
            continue  # of a list, and still to come
        if outdated.collect(subject) or (has_bridge and outdated.deltas(plan, step)):
            yield subject


def _looks(
    wanted: Sequence[Subject], outdated: Outdated, quiet: float, left: dict[str, str]
) -> dict[Path, Look]:
    """The state of every wanted checkpoint; notes those that are to be left alone."""
    due: list[Subject] = []
    looks: dict[Path, Look] = {}
    failures = {folder: read_failures(folder) for folder in {s.plan.results for s in wanted}}
    for subject in wanted:
        name = name_of(subject.plan.name, subject.label)
        state = folder_state(subject.checkpoint)
        failure = failures[subject.plan.results].get(subject.label)
        looks[subject.folder] = Look(state, None)
        if failure and failure.left(state) > 0:
            left[name] = f"failed: {failure.why}"
        elif outdated.score(subject):
            due.append(subject)
    looks |= look_at(due, quiet)
    for subject in due:
        if problem := looks[subject.folder].problem:
            left[name_of(subject.plan.name, subject.label)] = problem
    return looks


def _is_possible(subject: Subject, outdated: Outdated, left: Mapping[str, str]) -> bool:
    """Whether it can be evaluated now: a step that lacks only deltas waits for the bridge."""
    if name_of(subject.plan.name, subject.label) in left:
        return False
    if subject.role == "bridge" or outdated.collect(subject):
        return True
    return name_of(subject.plan.name) not in left


def _is_evaluated(plan: StagePlan, step: int, outdated: Outdated, left: Mapping[str, str]) -> bool:
    if outdated.collect(step_subject(plan, step)):
        return False
    return plan.stage.bridge is None or (
        name_of(plan.name) not in left and not outdated.deltas(plan, step)
    )

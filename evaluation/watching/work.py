"""What is to be evaluated now: which checkpoints are new, complete and quiet.

Complete: all weights are there, as `checkpoints.completeness` reads from headers. Quiet: no file below
its folder came, went or changed between two looks. A `latest.txt` decides nothing: it may run ahead
of the step that it names, and be missing where checkpoints were copied.

A run of Snakemake gets the configuration with these steps alone, so that it never meets a checkpoint
that is still being written.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.checkpoints.completeness import check_complete, check_whole
from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.state import folder_state
from evaluation.checkpoints.subjects import Subject, bridge_subject, stage_steps, step_subject
from evaluation.command_hints import snakemake
from evaluation.dependencies.caches import CacheStates, stage_entries
from evaluation.dependencies.known_steps import with_known_steps
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import COLLECT, STEP_DELTAS
from evaluation.errors import CacheError, CheckpointError, EvaluationError, UnsupportedCheckpoint
from evaluation.records import record_path
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan, plan_stages
from evaluation.watching.attempts import read_failures
from evaluation.wording import first_few


@dataclass(kw_only=True)
class Work:
    """What a look at the disk found; `plans` are of `config`, which has only steps to evaluate.

    `left_alone` has a reason for each checkpoint, or stage, that is not evaluated now.
    """

    config: Config
    plans: Mapping[str, StagePlan]
    ready: tuple[Subject, ...]
    states: dict[Path, str]
    evaluated: dict[str, tuple[int, ...]]
    left_alone: dict[str, str]
    seen: dict[str, tuple[int, ...]]

    def targets(self) -> list[str]:
        """Return the records that Snakemake is to make: of results, and of deltas with a bridge."""
        found = []
        for subject in self.ready:
            found.append(record_path(subject.folder, COLLECT))
            if subject.role == "step" and self.is_compared(subject.plan.name):
                found.append(record_path(subject.folder, STEP_DELTAS))
        return [str(path) for path in found]

    def is_compared(self, stage: str) -> bool:
        """Return whether the stage has a bridge that can be compared with now."""
        return self.plans[stage].stage.bridge is not None and name_of(stage) not in self.left_alone


def name_of(stage: str, label: str = "bridge") -> str:
    return f"{stage} {label}"


def check_caches(plan: StagePlan) -> None:
    """Raise CacheError where something is not prefilled, or was from other data or settings."""
    states = CacheStates()
    wrong = [entry for entry in stage_entries(plan) if states.state(entry) != "current"]
    if wrong:
        named = first_few([f"{entry.kind} {entry.name}" for entry in wrong], 4)
        raise CacheError(
            f"{plan.name}: not prefilled, or not as it is configured now: {named}; run "
            f"`{snakemake('prefill')}` on a machine with internet, with this configuration"
        )


def find_work(config: Config, stages: Sequence[str], quiet: float) -> Work:
    """Look at all checkpoints of these stages, and twice at those that are not evaluated."""
    plans = plan_stages(with_known_steps(config))
    search = _Search(Outdated(plans))
    known = {name: search.known_steps(plans[name]) for name in stages}
    wanted = [s for name in stages if known[name] for s in search.wanted(plans[name])]
    states = search.look_at(wanted, quiet)
    ready = [subject for subject in wanted if search.can_be_evaluated(subject)]
    limited = with_steps(
        next(iter(plans.values())).config,
        {name: search.scored_or(ready, plans[name], steps) for name, steps in known.items()},
    )
    return Work(
        config=limited,
        plans=plan_stages(limited),
        ready=tuple(ready),
        states=states,
        evaluated={
            name: tuple(step for step in steps if search.is_evaluated(plans[name], step))
            for name, steps in known.items()
        },
        left_alone=search.left_alone,
        seen={
            name: tuple(step for step in steps if configuration_file(plans[name].checkpoint(step)))
            for name, steps in known.items()
        },
    )


def with_steps(config: Config, steps: Mapping[str, tuple[int, ...]]) -> Config:
    """Return the configuration with these steps; a stage that has none keeps its own."""
    stages = {
        name: stage.model_copy(update={"steps": steps[name]}) if steps.get(name) else stage
        for name, stage in config.stages.items()
    }
    return config.model_copy(update={"stages": stages})


@dataclass
class _Search:
    """A look at all checkpoints, which notes in `left_alone` why one is not evaluated now."""

    outdated: Outdated
    left_alone: dict[str, str] = field(default_factory=dict)

    def known_steps(self, plan: StagePlan) -> tuple[int, ...]:
        try:
            return stage_steps(plan)
        except CheckpointError as error:
            self.left_alone[plan.name] = str(error)
            return ()

    def wanted(self, plan: StagePlan) -> Iterator[Subject]:
        """Yield the checkpoints of which something is missing, the bridge first."""
        has_bridge = plan.stage.bridge is not None
        steps = plan.stage.steps if isinstance(plan.stage.steps, tuple) else ()
        self.outdated.look_at(step_subject(plan, step) for step in steps)
        if has_bridge:
            try:
                bridge = bridge_subject(plan, self.outdated.plans)
            except EvaluationError as error:
                self.left_alone[name_of(plan.name)], has_bridge = str(error), False
            else:
                if self.outdated.collect(bridge):
                    yield bridge
        for step in steps:
            subject = step_subject(plan, step)
            if self.outdated.score(subject) and not configuration_file(subject.checkpoint):
                continue  # of a list, and still to come
            if self.outdated.collect(subject) or (has_bridge and self.outdated.deltas(plan, step)):
                yield subject

    def look_at(self, wanted: Sequence[Subject], quiet: float) -> dict[Path, str]:
        """Return every checkpoint's state; what failed, is incomplete or written is left alone."""
        due: list[Subject] = []
        states: dict[Path, str] = {}
        failures = {folder: read_failures(folder) for folder in {s.plan.results for s in wanted}}
        for subject in wanted:
            states[subject.folder] = state = folder_state(subject.checkpoint)
            failure = failures[subject.plan.results].get(subject.label)
            if failure and failure.left(state) > 0:
                self._leave(subject, f"failed: {failure.why}")
            elif self.outdated.score(subject):
                due.append(subject)
        for subject, state, problem in look_twice(due, quiet):
            states[subject.folder] = state
            if problem:
                self._leave(subject, problem)
        return states

    def _leave(self, subject: Subject, why: str) -> None:
        self.left_alone[name_of(subject.plan.name, subject.label)] = why

    def can_be_evaluated(self, subject: Subject) -> bool:
        """Return whether nothing is amiss: a step that lacks only deltas waits for the bridge."""
        if name_of(subject.plan.name, subject.label) in self.left_alone:
            return False
        if subject.role == "bridge" or self.outdated.collect(subject):
            return True
        return name_of(subject.plan.name) not in self.left_alone

    def scored_or(
        self, ready: Iterable[Subject], plan: StagePlan, steps: Iterable[int]
    ) -> tuple[int, ...]:
        """Return the steps that are scored or ready."""
        folders = {subject.folder for subject in ready}
        subjects = [(step, step_subject(plan, step)) for step in steps]
        return tuple(
            s for s, one in subjects if one.folder in folders or not self.outdated.score(one)
        )

    def is_evaluated(self, plan: StagePlan, step: int) -> bool:
        if self.outdated.collect(step_subject(plan, step)):
            return False
        return plan.stage.bridge is None or (
            name_of(plan.name) not in self.left_alone and not self.outdated.deltas(plan, step)
        )


def look_twice(subjects: Iterable[Subject], quiet: float) -> list[tuple[Subject, str, str | None]]:
    """Look at checkpoints twice, `quiet` seconds apart.

    Returns:
        For each its state, equal as long as no file changes, and why it is left alone, if it is.
    """
    before = [(subject, folder_state(subject.checkpoint)) for subject in subjects]
    if before:
        time.sleep(quiet)
    return [(subject, *_second_look(subject, state)) for subject, state in before]


def _second_look(subject: Subject, before: str) -> tuple[str, str | None]:
    try:
        problem = _problem(subject)
    except OSError as error:  # deleted or made unreadable as we looked
        problem = f"{error.filename or subject.checkpoint}: {error.strerror}"
    state = folder_state(subject.checkpoint)
    if not state:
        return state, f"{subject.checkpoint}: no checkpoint there"
    return state, f"{subject.checkpoint}: is being written" if state != before else problem


def _problem(subject: Subject) -> str | None:
    stage = subject.plan.stage
    try:
        assumed = stage.assume.use_mup if stage.assume else None
        checkpoint = open_checkpoint(subject.checkpoint, use_mup=assumed)
        (check_whole if stage.command else check_complete)(checkpoint)
    except UnsupportedCheckpoint:
        return None  # waiting will not help: its job records why it cannot be scored
    except CheckpointError as error:
        return str(error)
    return None

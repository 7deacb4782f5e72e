"""Finds the checkpoints to evaluate now: those that are new, complete and unchanged.

Complete: all weights exist, as `checkpoints.completeness` reads from headers. Unchanged: no file in the
folder was added, removed or changed between two looks. `latest.txt` is ignored: it may be written before
the step that it names, and may be missing where checkpoints were copied.

A run of Snakemake gets the configuration with these steps alone, so that it never reads a checkpoint
that is still being written.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.checkpoints.completeness import check_complete, check_whole
from evaluation.checkpoints.config_files import configuration_file
from evaluation.checkpoints.state import folder_state
from evaluation.checkpoints.subjects import Subject, bridge_subject, stage_steps, step_subject
from evaluation.dependencies.caches import CacheStates, stage_entries
from evaluation.dependencies.known_steps import with_known_steps
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import SCORE, STEPS
from evaluation.errors import (
    CacheError,
    CheckpointError,
    EvaluationError,
    UnsupportedCheckpoint,
    first_few,
)
from evaluation.records import record_path
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.watching.attempts import read_failures


@dataclass(kw_only=True)
class Work:
    """The checkpoints found on disk; `config` and `plans` have only the steps to evaluate.

    `skipped` has the reason for each checkpoint or stage that is not evaluated now.
    """

    config: Config
    plans: Mapping[str, StagePlan]
    ready: tuple[Subject, ...]
    states: dict[Path, str]
    evaluated: dict[str, tuple[int, ...]]
    skipped: dict[str, str]
    seen: dict[str, tuple[int, ...]]

    @property
    def targets(self) -> list[str]:
        """Files that Snakemake has to make."""
        return [
            str(record_path(subject.folder, step.name))
            for subject in self.ready
            for step in STEPS.values()
            if step.name != SCORE  # `collect` needs it
        ]

    def is_compared(self, stage: str) -> bool:
        """Return whether a stage has a bridge to compare its steps with now, which is not skipped."""
        return self.plans[stage].stage.bridge is not None and name_of(stage) not in self.skipped


def name_of(stage: str, label: str = "bridge") -> str:
    """Return the name of a checkpoint, by default the bridge, in messages and in `skipped`."""
    return f"{stage} {label}"


def check_caches(plan: StagePlan) -> None:
    """Raise CacheError if a cache of a stage is missing, or not as it is configured now."""
    states = CacheStates()
    wrong = [entry for entry in stage_entries(plan) if states.state(entry) != "current"]
    if wrong:
        named = first_few([f"{entry.kind} {entry.name}" for entry in wrong], 4)
        raise CacheError(
            f"{plan.name}: not prefilled, or not as it is configured now: {named}; run "
            f"`snakemake prefill` on a machine with internet, with this configuration"
        )


def find_work(config: Config, stages: Sequence[str], quiet: float) -> Work:
    """Look at all checkpoints of some stages, and again after `quiet` seconds at those not scored."""
    config = with_known_steps(config)
    plans = plan_stages(config)
    search = _Search(Outdated(plans))
    known = {name: search._known_steps(plans[name]) for name in stages}
    wanted = [s for name in stages if known[name] for s in search._wanted(plans[name])]
    states = search._look_at(wanted, quiet)
    ready = [subject for subject in wanted if search._can_be_evaluated(subject)]
    chosen = {name: search._scored_or(ready, plans[name], steps) for name, steps in known.items()}
    limited = _with_steps(config, chosen)
    return Work(
        config=limited,
        plans=plan_stages(limited),
        ready=tuple(ready),
        states=states,
        evaluated={
            name: tuple(step for step in steps if search._is_evaluated(plans[name], step))
            for name, steps in known.items()
        },
        skipped=search.skipped,
        seen={
            name: tuple(step for step in steps if configuration_file(plans[name].checkpoint(step)))
            for name, steps in known.items()
        },
    )


def _with_steps(config: Config, chosen: Mapping[str, tuple[int, ...]]) -> Config:
    """Return the configuration with these steps only; a stage without any keeps its steps."""
    stages = {
        name: stage.model_copy(update={"steps": chosen.get(name) or stage.steps})
        for name, stage in config.stages.items()
    }
    return config.model_copy(update={"stages": stages})


@dataclass
class _Search:
    """Looks at all checkpoints; `skipped` has the reason why one is not evaluated now."""

    outdated: Outdated
    skipped: dict[str, str] = field(default_factory=dict)

    def _known_steps(self, plan: StagePlan) -> tuple[int, ...]:
        """Return the existing or requested steps; none if they cannot be determined."""
        try:
            return stage_steps(plan)
        except CheckpointError as error:
            self.skipped[plan.name] = str(error)
            return ()

    def _wanted(self, plan: StagePlan) -> Iterator[Subject]:
        """Yield the checkpoints that lack results, the bridge first."""
        has_bridge = plan.stage.bridge is not None
        steps = plan.stage.steps if isinstance(plan.stage.steps, tuple) else ()
        subjects = [step_subject(plan, step) for step in steps]
        self.outdated.look_at(subjects)
        if has_bridge:
            try:
                bridge = bridge_subject(plan, self.outdated.plans)
            except EvaluationError as error:
                self.skipped[name_of(plan.name)], has_bridge = str(error), False
            else:
                if self._lacks(bridge):
                    yield bridge
        for subject in subjects:
            if self.outdated(SCORE, subject) and not configuration_file(subject.checkpoint):
                continue  # listed in the configuration, but not written yet
            if self._lacks(subject):
                yield subject

    def _lacks(self, subject: Subject) -> bool:
        """Return whether a step of a checkpoint has to be made."""
        return any(self.outdated(name, subject) for name in STEPS)

    def _look_at(self, wanted: Sequence[Subject], quiet: float) -> dict[Path, str]:
        """Return each checkpoint's state; skip those that failed, are incomplete or being written."""
        due: list[Subject] = []
        states: dict[Path, str] = {}
        failures = {folder: read_failures(folder) for folder in {s.plan.results for s in wanted}}
        for subject in wanted:
            states[subject.folder] = state = folder_state(subject.checkpoint)
            failure = failures[subject.plan.results].get(subject.label)
            if failure and failure.left(state) > 0:
                self._leave(subject, f"failed: {failure.why}")
            elif self.outdated(SCORE, subject):
                due.append(subject)
        for subject, state, problem in look_twice(due, quiet):
            states[subject.folder] = state
            if problem:
                self._leave(subject, problem)
        return states

    def _leave(self, subject: Subject, why: str) -> None:
        self.skipped[name_of(subject.plan.name, subject.label)] = why

    def _can_be_evaluated(self, subject: Subject) -> bool:
        """Return whether nothing is in the way; a step that lacks only deltas waits for the bridge."""
        if name_of(subject.plan.name, subject.label) in self.skipped:
            return False
        if subject.role == "bridge" or self._lacks(subject):
            return True
        return name_of(subject.plan.name) not in self.skipped

    def _scored_or(
        self, ready: Iterable[Subject], plan: StagePlan, steps: Iterable[int]
    ) -> tuple[int, ...]:
        """Return the steps that are scored or ready."""
        folders = {subject.folder for subject in ready}
        subjects = [(step, step_subject(plan, step)) for step in steps]
        return tuple(
            s
            for s, subject in subjects
            if subject.folder in folders or not self.outdated(SCORE, subject)
        )

    def _is_evaluated(self, plan: StagePlan, step: int) -> bool:
        """Return whether a checkpoint has all results, including deltas; false while these wait."""
        has_bridge, subject = plan.stage.bridge is not None, step_subject(plan, step)
        if has_bridge and name_of(plan.name) in self.skipped:
            return False
        return not self._lacks(subject)


def look_twice(subjects: Iterable[Subject], quiet: float) -> list[tuple[Subject, str, str | None]]:
    """Look at checkpoints twice, `quiet` seconds apart.

    Returns:
        For each its state, which changes with its files, and why it is skipped (None if it is not).
    """
    before = [(subject, folder_state(subject.checkpoint)) for subject in subjects]
    if before:
        time.sleep(quiet)
    return [(subject, *_second_look(subject, state)) for subject, state in before]


def _second_look(subject: Subject, before: str) -> tuple[str, str | None]:
    try:
        problem = _problem(subject)
    except OSError as error:  # deleted or made unreadable meanwhile
        problem = f"{error.filename or subject.checkpoint}: {error.strerror}"
    state = folder_state(subject.checkpoint)
    if not state:
        return state, f"{subject.checkpoint}: no checkpoint there"
    return state, f"{subject.checkpoint}: is being written" if state != before else problem


def _problem(subject: Subject) -> str | None:
    check = check_whole if subject.plan.stage.command else check_complete
    try:
        check(subject.open())
    except UnsupportedCheckpoint:
        return None  # waiting will not help: its job records why it cannot be scored
    except CheckpointError as error:
        return str(error)
    return None

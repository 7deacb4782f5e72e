"""What is to be made: the record that each step of each checkpoint has by the present configuration.

A target is made if its record exists and is intact. The files of a checkpoint that was deleted, wholly or
file by file, count as those that its scores were made from, as long as what is left agrees with them.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.checkpoints.state import State, checkpoint_state, checkpoint_states, is_left_of
from evaluation.checkpoints.subjects import Subject, stage_subjects
from evaluation.checkpoints.training import metadata_state
from evaluation.errors import CacheError, ResultsError
from evaluation.files import fingerprint
from evaluation.flow.caches import AskedOnce, Caches, stage_entries
from evaluation.flow.keys import collect_key, prefill_key, score_key
from evaluation.records import Record, is_intact, record_path, records_of
from evaluation.settings.plan import StagePlan

PREFILL, SCORE, COLLECT = "prefill", "score", "collect"

Plans = Mapping[str, StagePlan]
"""All stages of a run by name."""


@dataclass(frozen=True)
class StepTarget:
    """A step's record in a folder; `record` is None as long as it has to be made."""

    step: str
    folder: Path
    key: str
    number: int
    record: Record | None
    about: Mapping[str, Any]
    """What the record will say of its inputs."""

    @property
    def name(self) -> str:
        """Its key, with a number if an earlier record with this key was damaged."""
        return self.key if self.number == 1 else f"{self.key}-{self.number}"

    @property
    def path(self) -> Path:
        """File of the record."""
        return record_path(self.folder, self.step, self.name)


class Targets(AskedOnce):
    """One consistent view of the disk; nothing is written, and no weights are opened."""

    def __init__(self) -> None:
        super().__init__()
        self.caches = Caches()
        self._states: dict[Path, State] = {}

    def look_at(self, subjects: Iterable[Subject]) -> None:
        """Read the states of many checkpoints at once, for later calls about each of them."""
        self._states |= checkpoint_states(subject.checkpoint for subject in subjects)

    def state(self, subject: Subject) -> State:
        """Return the state of a checkpoint's files; empty if it is deleted."""
        if subject.checkpoint not in self._states:
            self._states[subject.checkpoint] = checkpoint_state(subject.checkpoint)
        return self._states[subject.checkpoint]

    def prefill(self, plans: Sequence[StagePlan]) -> StepTarget:
        """Return the record of all that stages with one folder of caches need."""

        def is_whole(record: Record) -> bool:
            entries = (entry for plan in plans for entry in stage_entries(plan))
            return not any(self.caches.entry_problem(entry) for entry in entries)

        return _target(PREFILL, plans[0].cache, prefill_key(list(plans)), {}, is_whole)

    def score(self, subject: Subject) -> StepTarget:
        """Return the record of a checkpoint's scores; raise CacheError where a cache is not usable."""
        return self.once(lambda: self._score(subject), SCORE, subject.folder)

    def collect(self, subject: Subject) -> StepTarget:
        """Return the record of a checkpoint's results; raise CacheError where a cache is not usable."""
        return self.once(lambda: self._collect(subject), COLLECT, subject.folder)

    def is_deleted_in_part(self, subject: Subject) -> bool:
        """Return whether files of a checkpoint were deleted since it was scored, and others are left."""
        state = self.state(subject)
        return bool(state) and state != self._agreed(subject)

    def _score(self, subject: Subject) -> StepTarget:
        plan = subject.plan
        if problem := self.caches.problem(plan):
            raise CacheError(f"{problem}; run: snakemake prefill")
        state, location = self._agreed(subject), os.path.realpath(subject.checkpoint)
        key = score_key(plan, subject, state, location, self.caches.asked(plan))
        about = {"checkpoint_state": state, "location": location}
        return _target(SCORE, subject.folder, key, about)

    def _agreed(self, subject: Subject) -> State:
        """Return the state that a record has and what is left agrees with; else the present one."""
        state, location = self.state(subject), os.path.realpath(subject.checkpoint)
        for record in reversed(records_of(subject.folder, SCORE).values()):
            about = record.about if record else {}
            if about.get("location") == location and is_left_of(
                state, about.get("checkpoint_state")
            ):
                return tuple(about["checkpoint_state"])
        return state

    def _collect(self, subject: Subject) -> StepTarget:
        score, metadata = self.score(subject), metadata_state(subject.checkpoint)
        if metadata is None:  # it may be deleted
            records = records_of(subject.folder, COLLECT).values()
            known = (record.about.get("metadata") for record in records if record)
            metadata = next(iter(known), None)
        documents = self.caches.documents(subject.plan)
        key = collect_key(subject, score.name, metadata, documents)

        def is_of_scores(record: Record) -> bool:
            return score.record is not None and record.about.get("scores") == score.record.identity

        return _target(COLLECT, subject.folder, key, {"metadata": metadata}, is_of_scores)


def check_results(plan: StagePlan, plans: Plans) -> None:
    """Raise ResultsError if a stage has results that are not those of the present settings, data or files."""
    targets, subjects = Targets(), stage_subjects(plan, plans)
    targets.look_at(subjects)
    for subject in subjects:
        if records_of(subject.folder, COLLECT) and targets.collect(subject).record is None:
            raise ResultsError(
                f"{subject.folder}: damaged, or made from other settings, data or checkpoints than there are "
                f"now; run `snakemake {plan.name}`"
            )


def _target(
    step: str,
    folder: Path,
    key: str,
    about: Mapping[str, Any],
    is_valid: Callable[[Record], bool] = lambda record: True,
) -> StepTarget:
    """Return the target of a key: its record, or the number after the last one that cannot be used."""
    numbers = {_number(name, key): record for name, record in records_of(folder, step).items()}
    last = max(numbers, default=0)
    record = numbers.get(last)
    if last and record and record.key == key and is_intact(record, folder) and is_valid(record):
        return StepTarget(step, folder, key, last, record, about)
    return StepTarget(step, folder, key, last + 1, None, about)


def _number(name: str, key: str) -> int:
    """Return the number in a record's name; 0 for another key."""
    own, _, number = name.partition("-")
    return 0 if own != key else int(number) if number.isdecimal() else 1


@dataclass(frozen=True)
class ScoringJob:
    """The checkpoints that one job scores: steps of a stage, or its bridge."""

    subjects: tuple[Subject, ...]
    targets: tuple[StepTarget, ...]

    @property
    def name(self) -> str:
        """Its steps, joined by underscores; or `bridge`."""
        steps = [subject.own_step for subject in self.subjects]
        return "bridge" if None in steps else "_".join(map(str, steps))

    @property
    def key(self) -> str:
        """The name of its record, or a fingerprint of those of several."""
        names = [target.name for target in self.targets]
        return names[0] if len(names) == 1 else fingerprint(names)


def batches(targets: Targets, subjects: Sequence[Subject], size: int) -> Iterator[ScoringJob]:
    """Yield the batches of a stage's checkpoints: those without scores, and those whose scoring failed."""
    known = [(subject, targets.score(subject)) for subject in subjects]
    lacking = [(subject, target) for subject, target in known if target.record is None]
    failed = [
        (subject, target) for subject, target in known if target.record and target.record.error
    ]
    for chosen in (lacking, failed):
        steps = [pair for pair in chosen if pair[0].role == "step"]
        groups = [steps[start : start + size] for start in range(0, len(steps), size)]
        groups += [[pair] for pair in chosen if pair[0].role == "bridge"]
        for group in groups:
            yield ScoringJob(tuple(s for s, _ in group), tuple(target for _, target in group))

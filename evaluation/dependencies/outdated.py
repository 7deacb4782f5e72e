"""What of a run's outputs is not what the configuration asks for now, from their records."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.checkpoints.state import (
    State,
    checkpoint_state,
    checkpoint_states,
    has_lost_files,
    is_left_of,
)
from evaluation.checkpoints.subjects import Subject, bridge_subject, stage_steps, step_subject
from evaluation.checkpoints.training import metadata_state
from evaluation.dependencies import steps as keys
from evaluation.dependencies.caches import (
    CacheEntry,
    CacheStates,
    graded_entries,
    stage_entries,
    tokenizer_entry,
)
from evaluation.dependencies.so_far import (
    are_figures_late,
    are_tables_late,
    is_comparison_late,
    is_front_late,
)
from evaluation.records import Record, is_intact, read_record
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan


@dataclass
class Outdated:
    """Asks each record once. A step is outdated, too, if one is that it reads from.

    A run tries again what has failed, and makes what is missing. With `as_made` neither is outdated,
    but only what was made from something else than there is now.
    """

    plans: Mapping[str, StagePlan]
    as_made: bool = False
    caches: CacheStates = field(default_factory=CacheStates)
    _known: dict[tuple[object, ...], bool] = field(default_factory=dict)
    _states: dict[Path, State] = field(default_factory=dict)

    def look_at(self, subjects: Iterable[Subject]) -> None:
        """Looks at many checkpoints at once, for the questions about each that follow."""
        self._states |= checkpoint_states(subject.checkpoint for subject in subjects)

    def cache(self, entry: CacheEntry) -> bool:
        """Whether it has to be made, even if nothing needs it; one that is missing may wait."""
        if self.caches.state(entry) == "stale":
            return True
        tokenizer = tokenizer_entry(entry.plan)
        return entry.tier is not None and self.caches.state(tokenizer) == "stale"

    def score(self, subject: Subject) -> bool:
        return self._once(("score", subject.folder), lambda: not self._is_scored(subject))

    def has_lost_files(self, subject: Subject) -> bool:
        """Whether files of the checkpoint have gone since it was scored, all of them or some."""
        record = read_record(subject.folder, keys.SCORE)
        recorded = record.about.get("checkpoint_state") if record else None
        return has_lost_files(self._state(subject.checkpoint), recorded)

    def collect(self, subject: Subject) -> bool:
        return self._once(("collect", subject.folder), lambda: not self._is_collected(subject))

    def deltas(self, plan: StagePlan, step: int) -> bool:
        return self._once(("deltas", plan.name, step), lambda: not self._has_deltas(plan, step))

    def tables(self, plan: StagePlan) -> bool:
        return self._once(("tables", plan.name), lambda: not self._has_tables(plan))

    def figures(self, plan: StagePlan) -> bool:
        return self.tables(plan) or are_figures_late(plan)

    def comparison(self) -> bool:
        """Of the runs that the configuration names; one that failed is tried again."""
        record = read_record(Path(self._config.results), keys.COMPARISON)
        if record is None:
            return not self.as_made
        if self._lacks_tables() or self._is_late(record):
            return True
        return is_comparison_late(self.plans)

    def front(self) -> bool:
        if self._lacks_tables() or (self._config.runs and self.comparison()):
            return True
        return is_front_late(self.plans)

    @property
    def _config(self) -> Config:
        return next(iter(self.plans.values())).config

    def _lacks_tables(self) -> bool:
        """Whether a stage's tables are to be made."""
        return any(self.tables(plan) for plan in self.plans.values())

    def bridge(self, plan: StagePlan) -> Subject:
        return bridge_subject(plan, self.plans)

    def _once(self, name: tuple[object, ...], ask: Callable[[], bool]) -> bool:
        if name not in self._known:
            self._known[name] = ask()
        return self._known[name]

    def _is_late(self, record: Record) -> bool:
        return record.error is not None and not self.as_made

    def _is_scored(self, subject: Subject) -> bool:
        record = read_record(subject.folder, keys.SCORE)
        if record is None:
            return self.as_made
        if self._is_late(record) or record.key != keys.score_key(subject):
            return False
        used = record.about.get("caches", {})
        for entry in stage_entries(subject.plan):
            if not self.caches.agrees(entry, used.get(entry.place)):
                return False
        # A checkpoint that is gone, or of which a part is, stays scored; another is scored anew.
        state = self._state(subject.checkpoint)
        is_same = not state or is_left_of(state, record.about.get("checkpoint_state"))
        return is_same and is_intact(record, subject.folder)

    def _state(self, checkpoint: Path) -> State:
        if checkpoint not in self._states:
            self._states[checkpoint] = checkpoint_state(checkpoint)
        return self._states[checkpoint]

    def _is_collected(self, subject: Subject) -> bool:
        score = read_record(subject.folder, keys.SCORE)
        record = read_record(subject.folder, keys.COLLECT)
        if record is None:
            return self.as_made
        if self.score(subject) or score is None or self._is_late(record):
            return False
        used = record.about.get("documents", {})
        if not all(
            self.caches.agrees(entry, used.get(entry.place), graded=True)
            for entry in graded_entries(subject.plan)
        ):
            return False
        counted = metadata_state(subject.checkpoint)
        if counted and counted != record.about.get("metadata"):
            return False
        is_wanted = record.key == keys.collect_key(subject, score)
        return is_wanted and is_intact(record, subject.folder)

    def _has_deltas(self, plan: StagePlan, step: int) -> bool:
        sides = step_subject(plan, step), self.bridge(plan)
        records = [read_record(side.folder, keys.COLLECT) for side in sides]
        own = read_record(plan.step_folder(step), keys.STEP_DELTAS)
        if own is None:
            return self.as_made
        if any(map(self.collect, sides)) or self._is_late(own):
            return False
        if records[0] is None or records[1] is None:
            return False
        key = keys.deltas_key(plan, step, records[0], records[1])
        return own.key == key and is_intact(own, plan.step_folder(step))

    def _has_tables(self, plan: StagePlan) -> bool:
        steps = stage_steps(plan)
        if any(self.collect(step_subject(plan, step)) for step in steps):
            return False
        if plan.stage.bridge is not None and (
            self.collect(self.bridge(plan)) or any(self.deltas(plan, step) for step in steps)
        ):
            return False
        return not are_tables_late(plan)

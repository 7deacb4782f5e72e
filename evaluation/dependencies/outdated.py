"""What of a run's outputs is not what the configuration asks for now, from their records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.checkpoints.subjects import Subject, bridge_subject, stage_steps, step_subject
from evaluation.dependencies import steps as keys
from evaluation.dependencies.caches import (
    CacheEntry,
    CacheStates,
    graded_entries,
    stage_entries,
    tokenizer_entry,
)
from evaluation.records import Record, is_intact, read_record
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan


@dataclass
class Outdated:
    """Asks each record once. A step is outdated, too, if one is that it reads from."""

    plans: Mapping[str, StagePlan]
    caches: CacheStates = field(default_factory=CacheStates)
    _known: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def cache(self, entry: CacheEntry) -> bool:
        """Whether it has to be made, even if nothing needs it; one that is missing may wait."""
        if self.caches.state(entry) == "stale":
            return True
        tokenizer = tokenizer_entry(entry.plan)
        return entry.tier is not None and self.caches.state(tokenizer) == "stale"

    def score(self, subject: Subject) -> bool:
        return self._once(("score", subject.folder), lambda: not self._is_scored(subject))

    def collect(self, subject: Subject) -> bool:
        return self._once(("collect", subject.folder), lambda: not self._is_collected(subject))

    def deltas(self, plan: StagePlan, step: int) -> bool:
        return self._once(("deltas", plan.name, step), lambda: not self._has_deltas(plan, step))

    def tables(self, plan: StagePlan) -> bool:
        return self._once(("tables", plan.name), lambda: not self._has_tables(plan))

    def figures(self, plan: StagePlan) -> bool:
        tables = read_record(plan.results, keys.TABLES)
        if self.tables(plan) or tables is None:
            return True
        return not _is_made(plan, keys.FIGURES, keys.figures_key(tables))

    def comparison(self) -> bool:
        """Of the runs that the configuration names; one that failed is tried again."""
        known, config = self._all_tables(), self._config
        if known is None:
            return True
        record = read_record(Path(config.results), keys.COMPARISON)
        if record is None or record.error is not None:
            return True
        key = keys.comparison_key(known, config.runs)
        return record.key != key or not is_intact(record, Path(config.results))

    def front(self) -> bool:
        known, results = self._all_tables(), Path(self._config.results)
        if known is None or (self._config.runs and self.comparison()):
            return True
        beside = read_record(results, keys.COMPARISON) if self._config.runs else None
        record = read_record(results, keys.FRONT)
        key = keys.front_key(known, beside)
        return record is None or record.key != key or not is_intact(record, results)

    @property
    def _config(self) -> Config:
        return next(iter(self.plans.values())).config

    def _all_tables(self) -> dict[str, Record] | None:
        """The records of all stages' tables; None if one is to be made."""
        if any(self.tables(plan) for plan in self.plans.values()):
            return None
        found = {name: read_record(plan.results, keys.TABLES) for name, plan in self.plans.items()}
        return {name: record for name, record in found.items() if record is not None}

    def bridge(self, plan: StagePlan) -> Subject:
        return bridge_subject(plan, self.plans)

    def _once(self, name: tuple[object, ...], ask: Callable[[], bool]) -> bool:
        if name not in self._known:
            self._known[name] = ask()
        return self._known[name]

    def _is_scored(self, subject: Subject) -> bool:
        record = read_record(subject.folder, keys.SCORE)
        if record is None or record.error is not None or record.key != keys.score_key(subject):
            return False
        used = record.about.get("caches", {})
        for entry in stage_entries(subject.plan):
            name = entry.folder.relative_to(subject.plan.config.cache).as_posix()
            if not self.caches.agrees(entry, used.get(name)):
                return False
        # A checkpoint that is gone stays scored; one that is another is scored anew.
        state = keys.checkpoint_state(subject.checkpoint)
        is_same = not state or state == record.about.get("checkpoint_state")
        return is_same and is_intact(record, subject.folder)

    def _is_collected(self, subject: Subject) -> bool:
        score = read_record(subject.folder, keys.SCORE)
        record = read_record(subject.folder, keys.COLLECT)
        if self.score(subject) or score is None or record is None or record.error is not None:
            return False
        used = record.about.get("documents", {})
        if not all(
            self.caches.agrees(entry, used.get(entry.name), graded=True)
            for entry in graded_entries(subject.plan)
        ):
            return False
        is_wanted = record.key == keys.collect_key(subject, score)
        return is_wanted and is_intact(record, subject.folder)

    def _has_deltas(self, plan: StagePlan, step: int) -> bool:
        sides = step_subject(plan, step), self.bridge(plan)
        records = [read_record(side.folder, keys.COLLECT) for side in sides]
        own = read_record(plan.step_folder(step), keys.STEP_DELTAS)
        if any(map(self.collect, sides)) or own is None or own.error is not None:
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
        return _is_made(
            plan, keys.TABLES, keys.tables_key(plan, steps, keys.stage_records(plan, steps))
        )


def _is_made(plan: StagePlan, step: str, key: str) -> bool:
    record = read_record(plan.results, step)
    return record is not None and record.key == key and is_intact(record, plan.results)

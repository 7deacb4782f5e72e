"""Find outputs that are not what the configuration asks for now, as their records show.

`Outdated` checks outputs against everything that the configuration requests. The functions below it
only check whether tables, figures and pages show the results that exist: a watcher, a run in which
a job failed, and a command by hand make pages from incomplete results, too.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from evaluation.checkpoints.locations import Location
from evaluation.checkpoints.state import State, checkpoint_state, checkpoint_states, is_left_of
from evaluation.checkpoints.subjects import (
    Subject,
    bridge_subject,
    candidate_subject,
    candidates_so_far,
    stage_candidates,
)
from evaluation.dependencies import steps as keys
from evaluation.dependencies.caches import AskedOnce, CacheStates
from evaluation.dependencies.inputs import are_results_of, are_scores_of
from evaluation.records import Record, is_intact, read_record
from evaluation.settings.candidates import Candidate
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan


class Outdated(AskedOnce):
    """Decides which outputs a run has to make; each decision is made once.

    An output is also outdated if one of its inputs is. A run makes missing outputs, and tries failed
    ones again.

    Args:
        as_made: If true, scores, results and deltas are outdated only if they were made from other
            inputs than there are now, not if they are missing or failed.
    """

    def __init__(self, plans: Mapping[str, StagePlan], *, as_made: bool = False) -> None:
        super().__init__()
        self.plans = plans
        self.as_made = as_made
        self.caches = CacheStates()
        self._states: dict[Location, State] = {}

    def look_at(self, subjects: Iterable[Subject]) -> None:
        """Read the states of many checkpoints at once, for later calls about each of them."""
        self._states |= checkpoint_states(subject.checkpoint for subject in subjects)

    def score(self, subject: Subject) -> bool:
        """Return whether a checkpoint has to be scored.

        Returns:
            Whether its scores are outdated.
        """
        return self.once(lambda: not self._is_scored(subject), "score", subject.folder)

    def has_lost_files(self, subject: Subject) -> bool:
        """Return whether some or all files of a checkpoint were deleted since it was scored.

        Returns:
            Whether files are missing, and the others have not changed.
        """
        record = read_record(subject.folder, keys.SCORE)
        recorded = record.about.get("checkpoint_state") if record else None
        state = self._state(subject.checkpoint)
        return is_left_of(state, recorded) and list(state) != recorded

    def collect(self, subject: Subject) -> bool:
        """Return whether a checkpoint's results have to be made.

        Returns:
            Whether its results are outdated.
        """
        return self.once(lambda: not self._is_collected(subject), "collect", subject.folder)

    def deltas(self, plan: StagePlan, step: Candidate) -> bool:
        """Return whether the deltas of a step or merge have to be made.

        Args:
            step: The step's number, or the merge's name.

        Returns:
            Whether its deltas are outdated.
        """
        return self.once(lambda: not self._has_deltas(plan, step), "deltas", plan.name, step)

    def tables(self, plan: StagePlan) -> bool:
        """Return whether a stage's tables have to be made.

        Returns:
            Whether its tables are outdated.
        """
        return self.once(lambda: not self._has_tables(plan), "tables", plan.name)

    def comparison(self) -> bool:
        """Return whether the page of other runs has to be made; a failed one is tried again.

        Returns:
            Whether the page, or a table that it shows, is outdated.
        """
        record = read_record(Path(self._config.results), keys.COMPARISON)
        is_made = record is not None and record.error is None
        return not is_made or self._lacks_tables() or is_comparison_outdated(self.plans)

    def front(self) -> bool:
        """Return whether the page of all stages has to be made.

        Returns:
            Whether the page, or something that it shows, is outdated.
        """
        lacks_page = bool(self._config.runs) and self.comparison()
        return lacks_page or self._lacks_tables() or is_front_outdated(self.plans)

    @property
    def _config(self) -> Config:
        return next(iter(self.plans.values())).config

    def _lacks_tables(self) -> bool:
        return any(self.tables(plan) for plan in self.plans.values())

    def _has_failed(self, record: Record) -> bool:
        return record.error is not None and not self.as_made

    def _is_scored(self, subject: Subject) -> bool:
        record = read_record(subject.folder, keys.SCORE)
        if record is None:
            return self.as_made
        if self._has_failed(record) or record.key != keys.score_key(subject):
            return False
        state = self._state(subject.checkpoint)
        is_of = are_scores_of(record.about, subject, self.caches, state)
        return is_of and is_intact(record, subject.folder)

    def _state(self, checkpoint: Location) -> State:
        if checkpoint not in self._states:
            self._states[checkpoint] = checkpoint_state(checkpoint)
        return self._states[checkpoint]

    def _is_collected(self, subject: Subject) -> bool:
        score = read_record(subject.folder, keys.SCORE)
        record = read_record(subject.folder, keys.COLLECT)
        if record is None:
            return self.as_made
        if self.score(subject) or score is None or self._has_failed(record):
            return False
        if not are_results_of(record.about, score.about, subject, self.caches):
            return False
        is_wanted = record.key == keys.collect_key(subject, score)
        return is_wanted and is_intact(record, subject.folder)

    def _has_deltas(self, plan: StagePlan, step: Candidate) -> bool:
        sides = candidate_subject(plan, step), bridge_subject(plan, self.plans)
        ours, bridge = (read_record(side.folder, keys.COLLECT) for side in sides)
        own = read_record(plan.step_folder(step), keys.STEP_DELTAS)
        if own is None:
            return self.as_made
        if any(map(self.collect, sides)) or self._has_failed(own) or ours is None or bridge is None:
            return False
        key = keys.deltas_key(plan, step, ours, bridge)
        return own.key == key and is_intact(own, plan.step_folder(step))

    def _has_tables(self, plan: StagePlan) -> bool:
        steps = stage_candidates(plan)
        subjects = [candidate_subject(plan, step) for step in steps]
        if plan.stage.bridge is not None:
            subjects.append(bridge_subject(plan, self.plans))
            if any(self.deltas(plan, step) for step in steps):
                return False
        return not any(map(self.collect, subjects)) and not are_tables_outdated(plan)


def _is_made(folder: Path, step: str, key: str) -> bool:
    """Return whether a step's outputs in a folder are unchanged since written, and have this key."""
    record = read_record(folder, step)
    return record is not None and record.key == key and is_intact(record, folder)


def tables_records(plans: Mapping[str, StagePlan]) -> dict[str, Record]:
    """Return the records of the tables that exist.

    Returns:
        Records by stage, in the order of the stages.
    """
    found = {name: read_record(plan.results, keys.TABLES) for name, plan in plans.items()}
    return {name: record for name, record in found.items() if record is not None}


def are_tables_outdated(plan: StagePlan) -> bool:
    """Return whether there are results that a stage's tables do not show.

    Returns:
        False also where there are no results.
    """
    steps = candidates_so_far(plan)
    records = keys.stage_records(plan, steps)
    key = keys.tables_key(plan, steps, records)
    return any(records) and not _is_made(plan.results, keys.TABLES, key)


def are_figures_outdated(plan: StagePlan) -> bool:
    """Return whether there are tables that a stage's figures do not show.

    Returns:
        False also where there are no tables.
    """
    tables = read_record(plan.results, keys.TABLES)
    return tables is not None and not _is_made(plan.results, keys.FIGURES, keys.figures_key(tables))


def is_comparison_outdated(plans: Mapping[str, StagePlan]) -> bool:
    """Return whether the page of other runs was made from other tables or runs than there are now.

    Returns:
        False also where there are no tables, or no other runs.
    """
    tables, config = tables_records(plans), next(iter(plans.values())).config
    key = keys.comparison_key(tables, config.runs)
    is_asked = bool(tables and config.runs)
    return is_asked and not _is_made(Path(config.results), keys.COMPARISON, key)


def is_front_outdated(plans: Mapping[str, StagePlan]) -> bool:
    """Return whether the page of all stages was made from other tables than there are now.

    Returns:
        False also where there are no tables.
    """
    tables, config = tables_records(plans), next(iter(plans.values())).config
    results = Path(config.results)
    comparison = read_record(results, keys.COMPARISON) if config.runs else None
    return bool(tables) and not _is_made(results, keys.FRONT, keys.front_key(tables, comparison))

"""Find outputs that are not what the configuration asks for now, as their records show."""

from collections.abc import Iterable

from evaluation.checkpoints.state import is_left_of
from evaluation.checkpoints.subjects import Subject
from evaluation.dependencies.caches import AskedOnce
from evaluation.dependencies.places import Place, Plans, Target, place_of
from evaluation.dependencies.steps import SCORE, STEPS, Step, key_of, records_of, sources
from evaluation.dependencies.view import View
from evaluation.records import is_intact, read_record


class Outdated(AskedOnce):
    """Decides which outputs a run has to make; each decision is made once.

    An output is also outdated if one of its inputs is. A run makes missing outputs, and tries failed
    ones again.

    Args:
        as_made: If true, outputs are outdated only if they were made from other inputs than there are
            now, not if they are missing or failed.
    """

    def __init__(self, plans: Plans, *, as_made: bool = False) -> None:
        super().__init__()
        self.plans = plans
        self.as_made = as_made
        self.view = View()

    def __call__(self, name: str, target: Target) -> bool:
        """Return whether a step has to be made for a checkpoint.

        Raises:
            ConfigError: A bridge that it reads cannot be resolved; or CheckpointError.
        """
        step, place = STEPS[name], place_of(target)
        return self.once(lambda: not self._is_current(step, place), name, place.folder)

    def look_at(self, subjects: Iterable[Subject]) -> None:
        """Read the states of many checkpoints at once, for later calls about each of them."""
        self.view.look_at(subject.checkpoint for subject in subjects)

    def has_lost_files(self, subject: Subject) -> bool:
        """Return whether files of a checkpoint were deleted since it was scored, and none changed."""
        record = read_record(subject.folder, SCORE)
        recorded = record.about.get("checkpoint_state") if record else None
        state = self.view.state(subject.checkpoint)
        return is_left_of(state, recorded) and list(state) != recorded

    def is_partly_deleted(self, subject: Subject) -> bool:
        """Return whether some files of a checkpoint, but not all, were deleted since it was scored."""
        return bool(self.view.state(subject.checkpoint)) and self.has_lost_files(subject)

    def _is_current(self, step: Step, place: Place) -> bool:
        record = read_record(place.folder, step.name)
        if record is None:
            return self.as_made
        if record.error is not None and not self.as_made:
            return False
        read = list(sources(step, place))
        if any(self(parent.name, where) for parent, where in read):
            return False
        records = records_of(read)
        return (
            None not in records
            and record.key == key_of(step, place, records)
            and step.agrees(record, records, place, self.view)
            and is_intact(record, place.folder)
        )

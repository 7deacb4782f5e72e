"""Carry scores over that version 1 stored under another identity of the checkpoint.

They are used only if a record shows that they are of these files: same path, sizes, times and inodes.
If version 1 gave several checkpoints one identity, nobody knows whose scores its folder has.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.earlier_identity import earlier_identity, earlier_state
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.locations import real_location
from evaluation.checkpoints.subjects import Subject
from evaluation.dependencies.steps import SCORE
from evaluation.records import FOLDER, Record, read_record
from evaluation.settings.plan import StagePlan
from evaluation.store import ScoreStore

log = logging.getLogger(__name__)


def open_store(subject: Subject, checkpoint: Checkpoint) -> ScoreStore:
    """Return the store of a checkpoint's scores, also of those of version 1; it reads all weights once."""
    plan = subject.plan
    identity = Contents(Path(plan.config.results)).identity(checkpoint)
    store = ScoreStore(plan.scores, identity)
    _carry_over(subject, checkpoint, store)
    return store


def _carry_over(subject: Subject, checkpoint: Checkpoint, store: ScoreStore) -> None:
    """Copy a checkpoint's scores of version 1 into its store, unless the store exists already."""
    root = store.folder.parent
    if store.folder.exists() or not root.is_dir() or not any(root.iterdir()):
        return
    earlier = _EarlierStore(root, earlier_identity(checkpoint))
    if not earlier.folder.is_dir():
        return
    if not _are_of(subject, earlier.folder.name):
        log.warning("%s: not used: other checkpoints may have the same name there", earlier.folder)
        return
    for name in earlier.names():
        if (score := earlier.read(name)) is not None:
            store.put_named(name, score)
    log.info("%s: scores carried over from %s", store.folder, earlier.folder)


class _EarlierStore(ScoreStore):
    """A store whose files do not have the checkpoint's identity inside."""

    def is_ours(self, path: Path, checkpoint: str | None) -> bool:
        """Return whether a file is of version 1, too."""
        return checkpoint is None


def _are_of(subject: Subject, identity: str) -> bool:
    """Return whether scores under an earlier identity are of this checkpoint alone, as it is now."""
    records = [
        record for record in _records(subject.plan) if record.about.get("identity") == identity
    ]
    location, state = real_location(subject.checkpoint), list(earlier_state(subject.checkpoint))
    is_alone = all(record.about.get("location") == location for record in records)
    return is_alone and any(record.about.get("checkpoint_state") == state for record in records)


def _records(plan: StagePlan) -> Iterator[Record]:
    """Yield the records of scores of all stages."""
    config = plan.config
    for name, stage in config.stages.items():
        results = Path(stage.results or Path(config.results) / name)
        for folder in [results / "bridge", *results.glob("by_checkpoint/*")]:
            if (folder / FOLDER).is_dir() and (record := read_record(folder, SCORE)) is not None:
                yield record

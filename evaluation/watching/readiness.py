"""Whether a checkpoint is complete and quiet, so that it may be scored.

Complete: all weights are there, as `checkpoints.completeness` tells from headers. Quiet: no file
below its folder came, went or changed while we looked on. A `latest.txt` decides nothing: it may run
ahead of the step that it names, and be missing where checkpoints were copied.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.completeness import check_complete, check_whole
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.state import folder_state
from evaluation.checkpoints.subjects import Subject
from evaluation.errors import CheckpointError, UnsupportedCheckpoint


@dataclass(frozen=True)
class Look:
    """A checkpoint's state, equal as long as no file changes; why it is left alone, if it is."""

    state: str
    problem: str | None


def look_at(subjects: Iterable[Subject], quiet: float) -> dict[Path, Look]:
    """Looks at each checkpoint twice, `quiet` seconds apart; by the subjects' folders of results."""
    before = [(subject, folder_state(subject.checkpoint)) for subject in subjects]
    if before:
        time.sleep(quiet)
    return {subject.folder: _look(subject, state) for subject, state in before}


def _look(subject: Subject, before: str) -> Look:
    try:
        problem = _problem(subject)
    except OSError as error:  # deleted or made unreadable as we looked
        problem = f"{error.filename or subject.checkpoint}: {error.strerror}"
    state = folder_state(subject.checkpoint)
    if not state:
        return Look(state, f"{subject.checkpoint}: no checkpoint there")
    return Look(state, f"{subject.checkpoint}: is being written" if state != before else problem)


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

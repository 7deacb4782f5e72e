"""Scores and grades one checkpoint, for a job's command or one of its processes."""

from evaluation.checkpoints.locations import Merge
from evaluation.checkpoints.merge import check_members
from evaluation.checkpoints.subjects import Subject, stage_steps
from evaluation.errors import ConfigError
from evaluation.exit_codes import report
from evaluation.grading.collect import collect
from evaluation.records import RECORDED, Record
from evaluation.wording import did_you_mean


def score_checkpoint(subject: Subject, *, scores_only: bool) -> int:
    """Score a checkpoint and write its tier files.

    Args:
        subject: The step, merge or bridge to score.
        scores_only: Whether the tier files are left to another step, which takes no GPU.

    Returns:
        0, or RECORDED if its record states why there are no results.

    Raises:
        ConfigError: For a step that is not there, of which nothing is recorded; a member of a merge
            that is not there raises CheckpointError.
    """
    if isinstance(subject.checkpoint, Merge):
        check_members(subject.checkpoint)
    elif subject.role == "step" and not subject.checkpoint.is_dir():
        plan, known = subject.plan, list(map(str, stage_steps(subject.plan)))
        raise ConfigError(
            f"stages.{plan.name}: no checkpoint of {subject.label} under {plan.stage.checkpoints}"
            f"{did_you_mean(str(subject.step), known)}; the configured steps are {', '.join(known)}"
        )
    from evaluation.scoring.job import score_subject  # torch, which collecting starts without

    record = score_subject(subject)
    return _report(record, subject) if scores_only else collect_checkpoint(subject)


def collect_checkpoint(subject: Subject) -> int:
    """Write the tier files of stored scores.

    Args:
        subject: The step, merge or bridge that has been scored.

    Returns:
        0, or RECORDED if its record states why there are no results.
    """
    return _report(collect(subject), subject)


def _report(record: Record, subject: Subject) -> int:
    if record.error is not None:
        report(record.error)
        return RECORDED
    print(subject.folder)
    return 0

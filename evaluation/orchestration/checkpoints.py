"""One checkpoint scored and graded, as a job's command or one of its processes does it."""

from evaluation.checkpoints.locations import Merge
from evaluation.checkpoints.merge import check_members
from evaluation.checkpoints.subjects import Subject, stage_steps
from evaluation.errors import ConfigError
from evaluation.exit_codes import report
from evaluation.grading.collect import collect
from evaluation.records import RECORDED, Record
from evaluation.wording import did_you_mean


def score_checkpoint(subject: Subject, *, scores_only: bool) -> int:
    """Score it and write its tier files; return 0, or RECORDED if its record says why not.

    With `scores_only` the tier files are left to another step, which takes no GPU.

    Raises:
        ConfigError: for a step that is not there, of which nothing is recorded.
        CheckpointError: likewise for a member of a merge.
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
    """Write the tier files of stored scores; return what `score_checkpoint` does."""
    return _report(collect(subject), subject)


def _report(record: Record, subject: Subject) -> int:
    if record.error is not None:
        report(record.error)
        return RECORDED
    print(subject.folder)
    return 0

"""Make a step of a checkpoint: check that it is what was planned, call its function, record what it made."""

from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import cast

from evaluation.checkpoints.subjects import Subject
from evaluation.errors import EvaluationError, ResultsError
from evaluation.files import fingerprint
from evaluation.flow.job_logs import remove_earlier
from evaluation.flow.targets import PREFILL, SCORE, StepTarget, Targets
from evaluation.records import Made, Record, write_record
from evaluation.settings.plan import StagePlan

_SCORE = "evaluation.scoring.job:score"
_COLLECT = "evaluation.grading.collect:collect"


def check_planned(targets: Sequence[StepTarget], planned: str | None) -> None:
    """Raise EvaluationError unless a job makes what its run planned; None: it was started by hand."""
    names = [target.name for target in targets]
    now = names[0] if len(names) == 1 else fingerprint(names)
    if planned is not None and planned != now:
        raise EvaluationError(
            "settings, data or checkpoints changed since this run was planned; run again"
        )


def make_score(subject: Subject, target: StepTarget) -> Record:
    """Score a checkpoint, and record its scores or its permanent error.

    Raises:
        EvaluationError: A cache, a file or this machine is at fault; a later run may succeed.
    """
    score = cast("Callable[[Subject], Made]", resolve_name(_SCORE))
    made = score(subject)
    now = Targets().score(subject)
    if now.key != target.key:
        raise EvaluationError(
            f"{subject.checkpoint}: it, settings or data changed while it was scored; run again"
        )
    return _write(target, made)


def make_collect(subject: Subject, targets: Targets, target: StepTarget) -> Record:
    """Make a checkpoint's results of its scores; an error of these becomes theirs.

    Raises:
        ResultsError: There are no scores yet; another EvaluationError as `make_score`.
    """
    score = targets.score(subject).record
    if score is None:
        raise ResultsError(
            f"{subject.folder}: no scores of the present settings yet; run `snakemake {subject.plan.name}`"
        )
    collect = cast("Callable[[Subject, Record], Made]", resolve_name(_COLLECT))
    made = collect(subject, score)
    return _write(target, made._replace(about={**made.about, "scores": score.identity}))


def record_prefilled(plans: Sequence[StagePlan], planned: str | None) -> None:
    """Record that all caches of stages are made."""
    target = Targets().prefill(plans)
    if planned is not None and planned.partition("-")[0] != target.key:
        check_planned([target], planned)
    write_record(target.folder, PREFILL, target.key, name=planned or target.name)
    remove_earlier(target.folder / "logs", PREFILL, planned or target.name)


def _write(target: StepTarget, made: Made) -> Record:
    return write_record(
        target.folder,
        target.step,
        target.key,
        made.files,
        name=target.name,
        error=made.error,
        about={**target.about, **made.about},
    )


def make(step: str, subject: Subject) -> Record:
    """Make a step of one checkpoint by hand, whether or not it is made already; raise as the others."""
    targets = Targets()
    if step == SCORE:
        return make_score(subject, targets.score(subject))
    return make_collect(subject, targets, targets.collect(subject))

"""Checks that each checkpoint to be scored is complete, and agrees with its stage.

Only headers are read (some hundred small files per checkpoint), of several checkpoints in parallel:
a parallel file system has a high latency but serves many requests at once.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from evaluation.checkpoints.agreement import check_agreement, check_tokenizer_fits
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.subjects import Subject, stage_subjects
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import SCORE
from evaluation.doctor.caches import Caches
from evaluation.doctor.findings import Check, Finding, State
from evaluation.errors import EvaluationError
from evaluation.processes import progress
from evaluation.settings.plan import StagePlan

_AT_ONCE = 8

_PARTLY_DELETED = (
    "some of its files were deleted since it was scored; its results stay, but it cannot be scored "
    "again: restore them, or delete the rest"
)


@dataclass(frozen=True)
class Subjects:
    """The checkpoints of some stages; `problems` has stages that cannot be listed, and half-deleted ones."""

    to_score: tuple[Subject, ...]
    scored: int
    problems: tuple[Finding, ...]


def find_subjects(chosen: Iterable[StagePlan], plans: Mapping[str, StagePlan]) -> Subjects:
    """Return the unscored steps and bridges of some stages, and how many are scored."""
    outdated = Outdated(plans)
    to_score, scored, problems = [], 0, []
    for plan in chosen:
        try:
            subjects = stage_subjects(plan, plans)
        except EvaluationError as error:
            problems.append(Finding("fault", plan.name, str(error)))
            continue
        outdated.look_at(subjects)
        late = [subject for subject in subjects if outdated(SCORE, subject)]
        to_score += late
        scored += len(subjects) - len(late)
        problems += [
            Finding("warning", _label(subject), f"{subject.checkpoint}: {_PARTLY_DELETED}")
            for subject in subjects
            if subject not in late and outdated.is_partly_deleted(subject)
        ]
    return Subjects(tuple(to_score), scored, tuple(problems))


def _label(subject: Subject) -> str:
    name = subject.plan.name
    return f"{name} bridge" if subject.role == "bridge" else f"{name}/{subject.step}"


def check_checkpoints(subjects: Subjects, caches: Caches, *, gate: bool) -> list[Check]:
    """Check checkpoints and bridges, and whether they agree with their stages.

    Args:
        gate: Whether every fault is only a warning, as each job records what is wrong with its
            checkpoint.
    """
    opened = _open_all(subjects.to_score)
    broken: dict[str, list[Finding]] = {"step": [], "bridge": []}
    foreign: list[Finding] = []
    state: State = "warning" if gate else "fault"
    whole: dict[str, list[Checkpoint]] = {}
    for subject in subjects.to_score:
        if isinstance(checkpoint := opened[_key(subject)], Checkpoint):
            whole.setdefault(subject.plan.name, []).append(checkpoint)
    for subject in subjects.to_score:
        checkpoint = opened[_key(subject)]
        if isinstance(checkpoint, str):
            broken[subject.role].append(Finding(state, _label(subject), checkpoint))
        elif sentence := _disagreement(subject, checkpoint, caches, whole[subject.plan.name]):
            foreign.append(Finding(state, _label(subject), sentence))
    done = f"; {subjects.scored} already scored" if subjects.scored else ""
    own = broken["step"]
    unreadable = f"; {len(own)} cannot be read" if own else ""
    return [
        Check(
            "checkpoints",
            f"{_count(subjects, 'step')}{done}{unreadable}",
            (*subjects.problems, *own),
        ),
        Check("bridges", _count(subjects, "bridge"), tuple(broken["bridge"])),
        Check("agreement", "tokenizer, vocabulary and sequence length", tuple(foreign)),
    ]


def _count(subjects: Subjects, role: str) -> str:
    return f"{sum(subject.role == role for subject in subjects.to_score) or 'none'} to score"


_Key = tuple[Path, str]
"""A checkpoint, and the stage's `assume` for it."""


def _key(subject: Subject) -> _Key:
    return subject.checkpoint, str(subject.plan.stage.assume)


def _open_all(subjects: Iterable[Subject]) -> dict[_Key, Checkpoint | str]:
    """Return each checkpoint once, opened, or a sentence about what is wrong with it."""
    ones = {_key(subject): subject for subject in subjects}
    opened = {}
    with (
        progress("checkpoints", len(ones), "ckpt", delay=3.0) as bar,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        for key, found in zip(ones, pool.map(_open, ones.values()), strict=True):
            opened[key] = found
            bar.update()
    return opened


def _open(subject: Subject) -> Checkpoint | str:
    try:
        checkpoint = subject.open()
        check_complete(checkpoint)
    except EvaluationError as error:
        return str(error)
    except OSError as error:
        path = error.filename or subject.checkpoint
        return f"{path}: {error.strerror}; make the checkpoint readable"
    return checkpoint


def _disagreement(
    subject: Subject, checkpoint: Checkpoint, caches: Caches, beside: Iterable[Checkpoint]
) -> str | None:
    plan = subject.plan
    if plan.stage.command:  # an external program has its own requirements
        return None
    try:
        is_bridge = subject.role == "bridge"
        check_agreement(plan, checkpoint, is_bridge=is_bridge, others=beside)
        tokenizer = caches.tokenizers.get(plan.tokenizer_folder)
        tokens = None if tokenizer is None else len(tokenizer)
        check_tokenizer_fits(checkpoint, caches.vocab_size_needed(plan), tokens)
    except EvaluationError as error:
        return str(error)
    return None

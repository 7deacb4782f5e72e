"""Verifies every gold answer with the verifiers that will use it, before anything is generated.

With a gold that is not an answer, or that a verifier cannot read, all completions of its prompt would be
counted as wrong, and nobody would notice why.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.settings.computing import Verification
from evaluation.settings.generation import GenerationTask
from evaluation.settings.verifiers import Program, Verifier
from evaluation.verification.answers import AnswerKind
from evaluation.verification.pool import verify_all
from evaluation.verification.registry import VERIFIERS
from evaluation.verification.verdicts import INVALID, OUT_OF_MEMORY, OUT_OF_TIME, Verdict, shortened

_NAMED = 5
"""Number of ids that an error names."""


def check_golds(
    name: str,
    task: GenerationTask,
    documents: Mapping[str, Mapping[str, Any]],
    *,
    limits: Verification,
    nltk_data: Path | None = None,
) -> None:
    """Verify every gold answer with the verifiers that will use it.

    Instructions have no gold: only their names and arguments are checked. A program is run if the
    document has one as its `gold`. Where a verifier has no gold, a machine that is too busy is no reason
    to refuse anything.

    Args:
        documents: Fields of each prompt's document, by the prompt's id.
        nltk_data: The only folder that NLTK reads from; None for NLTK's default folders.

    Raises:
        SourceError: When a verifier counts a gold as wrong, or cannot verify it.
    """
    checks = [
        (view, id, (verifier, document, completion))
        for view, verifier in task.verifiers.items()
        for id, document in documents.items()
        if (completion := VERIFIERS[verifier.kind].right(verifier, document)) is not None
    ]
    wrong: dict[str, dict[str, str]] = {}
    failed: dict[str, dict[str, str]] = {}
    jobs = [job for _, _, job in checks]
    for number, verdict in verify_all(
        jobs,
        workers=limits.processes,
        seconds=limits.seconds,
        memory_mb=limits.memory_mb,
        nltk_data=nltk_data,
        sandbox=limits.sandbox,
    ):
        view, id, (verifier, document, _) = checks[number]
        if (problem := _problem(verifier, document, verdict)) is not None:
            (failed if _is_failure(verdict) else wrong).setdefault(view, {})[id] = problem
    for view, problems in wrong.items():
        raise SourceError(_sentence(name, view, problems, list(documents)))
    for view, problems in failed.items():
        raise SourceError(_not_verified(name, view, problems, len(documents)))


def _is_failure(verdict: Verdict) -> bool:
    """Return whether time, memory or the machine is at fault, not the gold."""
    return verdict.credit is None or verdict.note in (OUT_OF_TIME, OUT_OF_MEMORY)


def _problem(verifier: Verifier, document: Mapping[str, Any], verdict: Verdict) -> str | None:
    """Return why a gold cannot be used; None if it can."""
    kind = VERIFIERS[verifier.kind]
    if not (isinstance(kind, AnswerKind) or isinstance(verifier, Program)):  # it has no gold
        return verdict.reason if verdict.note == INVALID else None
    if document["gold"] is None or not str(document["gold"]).strip():
        return "it is empty"
    if verdict.credit != 1:
        return verdict.reason
    if isinstance(kind, AnswerKind) and not kind.bare(verifier, verdict.answer or "").strip():
        return (
            f"{document['gold']!r} is empty when it is compared, so an empty answer would be right"
        )
    return None


def _not_verified(name: str, view: str, problems: Mapping[str, str], count: int) -> str:
    """Return the message for golds that could not be verified, which is no fault of theirs."""
    first, why = next(iter(problems.items()))
    return (
        f"generation_tasks.{name}: the verifier {view!r} has no verdict on {len(problems):,} of {count:,} "
        f"gold answers (the first, {first}: {shortened(why)}); mend what it says and prefill again. If "
        "time or memory ran out, raise `verification.seconds` or `verification.memory_mb`, or take a "
        "machine with less to do"
    )


def _sentence(name: str, view: str, problems: Mapping[str, str], ids: list[str]) -> str:
    named = [id for id in ids if id in problems]
    shown = ", ".join(named[:_NAMED]) + (", …" if len(named) > _NAMED else "")
    return (
        f"generation_tasks.{name}: {len(named):,} of {len(ids):,} gold answers are not right by the "
        f"verifier {view!r} itself: {shown} (the first: {shortened(problems[named[0]])}); correct "
        f"`document`, `verifiers.{view}` (of a pattern also `form`), or the data"
    )

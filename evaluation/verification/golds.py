"""Verifies every gold answer with the verifiers that will use it, before anything is generated.

With a gold that is not an answer, or that a verifier cannot read, all completions of its prompt would be
counted as wrong, and nobody would notice why.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError, first_few
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
    problems: dict[tuple[bool, str], dict[str, str]] = {}
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
            problems.setdefault((_is_failure(verdict), view), {})[id] = problem
    if problems:
        (is_failure, view), first = min(problems.items(), key=lambda entry: entry[0])
        raise SourceError(_sentence(name, view, first, len(documents), is_failure))


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


def _sentence(
    name: str, view: str, problems: Mapping[str, str], count: int, is_failure: bool
) -> str:
    ids = first_few(list(problems), _NAMED)
    found, remedy = (
        "are not right by",
        f"correct `document`, `verifiers.{view}` (its `form`), or the data",
    )
    if is_failure:
        found = "have no verdict by"
        remedy = "raise `verification.seconds` or `verification.memory_mb`, or take an idle machine"
    return (
        f"generation_tasks.{name}: {len(problems):,} of {count:,} gold answers {found} the verifier {view!r} "
        f"itself: {ids} (the first: {shortened(next(iter(problems.values())))}); {remedy}"
    )

"""Verdicts on completions, both of Tier4's probes and of Tier5's tasks.

A verdict is stored with the checkpoint's scores under all that decides it: the protocol, the limits of time
and memory, the verifier's settings, the document and the text. Where a verifier failed, it runs again.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import fingerprint, unordered
from evaluation.prefill.provided import provider_of
from evaluation.providers.tasks import score, verdict_of
from evaluation.settings.checks import Check
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import Tier
from evaluation.settings.verifiers import AnyVerifier, Provided
from evaluation.store import ScoreStore, StoredScore
from evaluation.verification.pool import VerifierJob, storable, verify_all
from evaluation.verification.verdicts import Verdict

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("credit", pa.float64()),
        ("answer", pa.string()),
        ("reason", pa.string()),
        ("weight", pa.float64()),
        ("note", pa.string()),
    ]
)

AnswerJob = tuple[AnyVerifier | Check, Mapping[str, Any], str]
"""A verifier's settings, the prompt's document, and a completion cut at its stops."""

_PROVIDED_PART = 2000
"""Most completions that one run of a provider's program verifies; verdicts are stored when it ends."""

_PART = 1000
"""Number of verdicts that are stored together."""


def find_verdicts(
    plan: StagePlan, store: ScoreStore, tier: Tier, name: str, jobs: Sequence[AnswerJob]
) -> list[Verdict]:
    """Return a verdict for each job; compute and store those that are not stored.

    Args:
        name: Names the verdicts in the store, for readers.
    """
    limits = plan.config.verification.model_dump(include={"seconds", "memory_mb"})
    item, settings = f"verdicts-{name}", {"protocol": tier.protocol, **limits}
    keys = [*_keys(jobs)]
    verdicts, _ = store.find_rows(
        store.prefix(item, settings),
        keys,
        lambda row, _: Verdict(**{field: row[field] for field in SCHEMA.names[1:]}),
    )
    missing = {key: job for key, job in zip(keys, jobs, strict=True) if key not in verdicts}
    names, new = [*missing], _run_verifiers(plan, [*missing.values()])
    while part := {names[number]: verdict for number, verdict in islice(new, _PART)}:
        verdicts |= part
        sure = {key: verdict for key, verdict in part.items() if verdict.credit is not None}
        if sure:  # where a verifier failed, it may succeed on another machine
            rows = [{"key": key, **vars(verdict)} for key, verdict in sure.items()]
            store.put_part(item, settings, StoredScore(pa.Table.from_pylist(rows, SCHEMA), {}))
    return [verdicts[key] for key in keys]


def _keys(jobs: Sequence[AnswerJob]) -> Iterator[str]:
    shared: dict[tuple[int, int], str] = {}  # of a verifier and a document, which samples share
    for verifier, document, text in jobs:
        both = id(verifier), id(document)
        if both not in shared:
            shared[both] = fingerprint([verifier.model_dump(mode="json"), unordered(document)])
        yield fingerprint([shared[both], text])


def check_errors(what: str, verdicts: Mapping[str, Verdict], max_error_share: float) -> None:
    """Raise ScoringError where more could not be verified; verdicts are by what an error calls each."""
    failed = {place: v.reason for place, v in verdicts.items() if v.credit is None}
    if len(failed) > max_error_share * len(verdicts):
        allowed = f", more than verification.max_error_share {max_error_share:g}"
        first, reason = next(iter(failed.items()))
        raise ScoringError(
            f"{what}: {len(failed)} of {len(verdicts)} completions could not be verified"
            f"{allowed if max_error_share else ''}; the first is {first}: {reason}"
        )


def _run_verifiers(plan: StagePlan, jobs: Sequence[AnswerJob]) -> Iterator[tuple[int, Verdict]]:
    """Yield each job's number and verdict, as computed; raise what `verify_all` and `score` raise."""
    built_in: dict[int, VerifierJob] = {}
    provided: dict[Provided, dict[str, list[int]]] = {}
    for number, (verifier, document, text) in enumerate(jobs):
        if not isinstance(verifier, Provided):
            built_in[number] = verifier, document, text
        else:  # a provider verifies each completion once, for all metrics of a task
            alike = provided.setdefault(verifier.model_copy(update={"metric": ""}), {})
            alike.setdefault(fingerprint([document, text]), []).append(number)
    how, numbers = plan.config.verification, [*built_in]
    for place, verdict in verify_all(
        [*built_in.values()],
        workers=how.processes,
        seconds=how.seconds,
        memory_mb=how.memory_mb,
        nltk_data=plan.nltk_data,
        sandbox=how.sandbox,
    ):
        yield numbers[place], verdict
    for task, of_task in provided.items():
        yield from _provided(plan, task, jobs, [*of_task.values()])


def _provided(
    plan: StagePlan, task: Provided, jobs: Sequence[AnswerJob], groups: Sequence[list[int]]
) -> Iterator[tuple[int, Verdict]]:
    """Yield the verdicts of a provider, given the numbers of jobs that verify the same text."""
    provider, limits = provider_of(plan, task), plan.config.verification
    starts = range(0, len(groups), _PROVIDED_PART)
    parts = [groups[start : start + _PROVIDED_PART] for start in starts]
    cases = ([jobs[numbers[0]][1:] for numbers in part] for part in parts)
    with ThreadPoolExecutor(limits.processes) as pool:
        outcomes = pool.map(lambda part: score(provider, task.task, part, limits), cases)
        for numbers, outcome in zip(groups, chain.from_iterable(outcomes), strict=True):
            for number in numbers:
                verifier, _, text = jobs[number]
                assert isinstance(verifier, Provided)
                yield number, storable(verdict_of(verifier.metric, outcome, text))

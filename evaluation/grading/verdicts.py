"""Verdicts on completions, both of Tier4's probes and of Tier5's tasks.

Verdicts are stored with the checkpoint's scores, by what they depend on: the verifier, the parts of the
document that it reads, and the completion's text. The limits of time and memory under which a verdict
was computed are stored with it: it is reused under wider limits, and computed again under narrower ones.
Where a verifier failed, it runs again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.fingerprints import fingerprint
from evaluation.prefill.provided import limits_of, provider_of, scoring_request
from evaluation.providers.score import Case as ProviderCase
from evaluation.providers.score import CaseLimits, CaseOutcome, score, verdict_of
from evaluation.settings.checks import Check
from evaluation.settings.plan import StagePlan
from evaluation.settings.verifiers import AnyVerifier, Provided
from evaluation.store import ScoreStore, StoredScore
from evaluation.verification.pool import VerifierJob, storable, too_long, verify_all
from evaluation.verification.verdicts import OUT_OF_MEMORY, OUT_OF_TIME, Verdict

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("credit", pa.float64()),
        ("answer", pa.string()),
        ("reason", pa.string()),
        ("weight", pa.float64()),
        ("note", pa.string()),
        ("seconds", pa.float64()),
        ("memory_mb", pa.int64()),
    ]
)

AnswerJob = tuple[AnyVerifier | Check, Mapping[str, Any], str]
"""A verifier's settings, the prompt's document, and a completion cut at its stops."""

_PROVIDED_PART = 2000
"""Most completions that one run of a provider's program verifies; verdicts are stored when it ends."""

_PART = 1000
"""Number of verdicts that are stored together."""


@dataclass(frozen=True)
class CompletionBatch:
    """Completions to be verified, whose verdicts are one item of the score store.

    Errors call the batch `name` and each job by its place in `places`. A verdict depends on nothing but
    `settings` and the job's key.
    """

    name: str
    item: str
    settings: Mapping[str, Any]
    jobs: Sequence[AnswerJob]
    keys: Sequence[str]
    places: Sequence[str]
    max_error_share: float


def find_verdicts(
    plan: StagePlan, store: ScoreStore, batches: Sequence[CompletionBatch]
) -> list[list[Verdict]]:
    """Return for each batch a verdict for each of its jobs; compute those that are not stored.

    Raises:
        ScoringError: More verdicts of a batch failed than its `max_error_share` allows.
    """
    items = [_StoredVerdicts(store, batch, limits_of(plan)) for batch in batches]
    missing = [
        (item, key, job)
        for item, batch in zip(items, batches, strict=True)
        for key, job in dict(zip(batch.keys, batch.jobs, strict=True)).items()
        if key not in item.verdicts
    ]
    for number, verdict in run_verifiers(plan, [job for _, _, job in missing]):
        item, key, _ = missing[number]
        item.add(key, verdict)
    complete = []
    for item, batch in zip(items, batches, strict=True):
        item.flush()
        complete.append([item.verdicts[key] for key in batch.keys])
    for batch, verdicts in zip(batches, complete, strict=True):
        check_errors(batch.name, batch.places, verdicts, batch.max_error_share)
    return complete


class _StoredVerdicts:
    """Verdicts of a batch: those that are stored, and new ones, which are stored in parts."""

    def __init__(self, store: ScoreStore, batch: CompletionBatch, limits: CaseLimits) -> None:
        self.store, self.batch = store, batch
        self.limits = {"seconds": limits.seconds, "memory_mb": limits.memory_mb}
        self.verdicts = self._read(limits)
        self._new: dict[str, Verdict] = {}

    def _read(self, limits: CaseLimits) -> dict[str, Verdict]:
        """Return by key the verdicts that these limits would give, too.

        They were computed under limits no wider than these; those that a limit decided, under the same.
        Old ones without limits are not used.
        """

        def read(row: dict[str, Any], _: Mapping[str, Any]) -> Verdict | None:
            seconds, memory_mb = row.pop("seconds", math.inf), row.pop("memory_mb", math.inf)
            fits = seconds <= limits.seconds and memory_mb <= limits.memory_mb
            if row.get("note") in (OUT_OF_TIME, OUT_OF_MEMORY):
                fits = (seconds, memory_mb) == (limits.seconds, limits.memory_mb)
            return Verdict(**{name: row[name] for name in row if name != "key"}) if fits else None

        prefix = self.store.prefix(self.batch.item, self.batch.settings)
        return self.store.find_rows(prefix, self.batch.keys, read)[0]

    def add(self, key: str, verdict: Verdict) -> None:
        """Add a new verdict, and store new ones once there are enough for a part."""
        self.verdicts[key] = self._new[key] = verdict
        if len(self._new) == _PART:
            self.flush()

    def flush(self) -> None:
        """Store new verdicts, except those of verifiers that failed: they may succeed elsewhere."""
        rows = [
            {"key": key, **vars(verdict), **self.limits}
            for key, verdict in self._new.items()
            if verdict.credit is not None
        ]
        if rows:
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            self.store.put_part(self.batch.item, self.batch.settings, StoredScore(table, {}))
        self._new = {}


def check_errors(
    what: str, places: Sequence[str], verdicts: Sequence[Verdict], max_error_share: float
) -> None:
    """Check that enough completions could be verified; raise ScoringError, which names the first other one.

    Args:
        places: What an error calls each completion.
        max_error_share: Share of failures that is allowed.
    """
    failed = [(p, v) for p, v in zip(places, verdicts, strict=True) if v.credit is None]
    if len(failed) <= max_error_share * len(places):
        return
    place, verdict = failed[0]
    allowed = f", more than verification.max_error_share {max_error_share:g}"
    raise ScoringError(
        f"{what}: {len(failed)} of {len(places)} completions could not be verified"
        f"{allowed if max_error_share else ''}; the first is {place}: {verdict.reason}"
    )


def run_verifiers(plan: StagePlan, jobs: Sequence[AnswerJob]) -> Iterator[tuple[int, Verdict]]:
    """Yield each job's number and verdict, as computed; raise what `verify_all` and `score` raise."""
    verifier_jobs: dict[int, VerifierJob] = {}
    provided: dict[Provided, list[int]] = {}
    for number, (verifier, document, text) in enumerate(jobs):
        if isinstance(verifier, Provided):
            provided.setdefault(verifier.model_copy(update={"metric": ""}), []).append(number)
        else:
            verifier_jobs[number] = (verifier, document, text)
    how, numbers = plan.config.verification, list(verifier_jobs)
    for place, verdict in verify_all(
        list(verifier_jobs.values()),
        workers=how.processes,
        seconds=how.seconds,
        memory_mb=how.memory_mb,
        nltk_data=plan.nltk_data,
    ):
        yield numbers[place], verdict
    for task, of_task in provided.items():
        yield from _provided(plan, task, {number: jobs[number] for number in of_task})


def _provided(
    plan: StagePlan, task: Provided, jobs: Mapping[int, AnswerJob]
) -> Iterator[tuple[int, Verdict]]:
    """Yield verdicts of a provider, which verifies each completion once for all metrics of a task."""
    alike: dict[str, list[int]] = {}
    for number, (_, document, text) in jobs.items():
        if (verdict := too_long(text)) is not None:
            yield number, verdict
            continue
        alike.setdefault(fingerprint([document, text]), []).append(number)
    groups = list(alike.values())
    parts = [
        groups[start : start + _PROVIDED_PART] for start in range(0, len(groups), _PROVIDED_PART)
    ]

    provider, request = provider_of(plan, task), scoring_request(task)

    def score_part(part: list[list[int]]) -> list[CaseOutcome]:
        cases: list[ProviderCase] = [jobs[numbers[0]][1:] for numbers in part]
        return score(provider, request, cases, limits_of(plan))

    with ThreadPoolExecutor(plan.config.verification.processes) as pool:
        for part, outcomes in zip(parts, pool.map(score_part, parts), strict=True):
            for numbers, outcome in zip(part, outcomes, strict=True):
                for number in numbers:
                    yield number, _verdict(jobs[number], outcome)


def _verdict(job: AnswerJob, outcome: CaseOutcome) -> Verdict:
    verifier, _, text = job
    assert isinstance(verifier, Provided)
    return storable(verdict_of(verifier.metric, outcome, text))

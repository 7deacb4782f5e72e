"""Tier5: what each verifier says of each completion: stored, or by processes, or by providers in batches.

A verdict is kept with the checkpoint's scores and found again by what it depends on: verifier, what
that reads of the document, and the completion's text. The limits that it was reached under stand
beside it: under wider ones it would be the same, under narrower ones it is asked for again, as is that
of a verifier that failed.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import fingerprint, unordered
from evaluation.prefill.provided import limits_of, provider_of, scoring_request, workers_of
from evaluation.providers.programs import run_programs
from evaluation.providers.score import Case as ProviderCase
from evaluation.providers.score import Limits, Outcome, score, verdict_of
from evaluation.settings.computing import Verification
from evaluation.settings.generation import Judged
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import Judge, Provided, Verifier
from evaluation.store import ScoreStore, StoredScore
from evaluation.verification.pool import storable, too_long, verify_all
from evaluation.verification.verdicts import Verdict

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

Job = tuple[Judge, Mapping[str, Any], str]
"""A verifier's settings, the prompt's document, and a completion cut at its stops."""

_PROVIDED_PART = 2000
"""Completions that a provider's program judges at most: its verdicts are kept when it is done."""

_PART = 1000
"""Verdicts stored at once."""


@dataclass(frozen=True)
class Case:
    """A completion to be judged, and what verifiers read of its prompt."""

    prompt: str
    sample: int
    text: str
    document: Mapping[str, Any]


def verdicts_of(
    plan: StagePlan, store: ScoreStore, name: str, task: Judged, cases: Sequence[Case]
) -> dict[str, list[Verdict]]:
    """Return a verdict for each of a task's cases in their order, by verifier.

    Raises:
        ScoringError: more verdicts failed than `verification.max_error_share` allows.
    """
    keys = [fingerprint([unordered(case.document), case.text]) for case in cases]
    limits = limits_of(plan)
    views = [
        _View(store, f"verdicts-{name}-{_in_a_file_name(view)}", verifier, keys, limits)
        for view, verifier in task.views.items()
    ]
    asked = [(v, k, c) for v in views for k, c in v.lacking(keys, cases).items()]
    jobs = [(v.verifier, c.document, c.text) for v, _, c in asked]
    for number, verdict in run_verifiers(plan, jobs):
        view, key, _ = asked[number]
        view.take(key, verdict)
    for view in views:
        view.keep()
    found = {n: [v.known[key] for key in keys] for n, v in zip(task.views, views, strict=True)}
    places = [(case.prompt, case.sample) for case in cases]
    for view_name, verdicts in found.items():
        check_errors(f"{name}: {view_name}", places, verdicts, plan.config.verification)
    return found


def _in_a_file_name(view: str) -> str:
    """Metrics of a provider may be called `a/b`; the key tells those apart that differ no more."""
    return re.sub(r"[^\w,@.-]", "_", view)


class _View:
    """What one verifier says of a task's completions: stored verdicts, and fresh ones in parts."""

    def __init__(
        self,
        store: ScoreStore,
        item: str,
        verifier: Judge,
        keys: Sequence[str],
        limits: Limits,
    ) -> None:
        self.verifier = verifier
        self.limits = {"seconds": limits.seconds, "memory_mb": limits.memory_mb}
        self._store, self._item = store, item
        self._settings = {
            "protocol": TIERS["tier5"].protocol,
            "verifier": verifier.model_dump(mode="json"),
        }
        self.known = _stored(store, store.prefix(item, self._settings), set(keys), limits)
        self._fresh: dict[str, Verdict] = {}

    def lacking(self, keys: Sequence[str], cases: Sequence[Case]) -> dict[str, Case]:
        return {k: case for k, case in zip(keys, cases, strict=True) if k not in self.known}

    def take(self, key: str, verdict: Verdict) -> None:
        self.known[key] = self._fresh[key] = verdict
        if len(self._fresh) == _PART:
            self.keep()

    def keep(self) -> None:
        """Store what is fresh, but for failures: what failed once may succeed elsewhere."""
        rows = [
            {"key": key, **vars(verdict), **self.limits}
            for key, verdict in self._fresh.items()
            if verdict.credit is not None
        ]
        if rows:
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            self._store.put_part(self._item, self._settings, StoredScore(table, {}))
        self._fresh = {}


def _stored(store: ScoreStore, prefix: str, wanted: set[str], limits: Limits) -> dict[str, Verdict]:
    """By completion, what was reached under limits that are no wider; older ones do not tell theirs."""

    def read(row: dict[str, Any], _: Mapping[str, Any]) -> Verdict | None:
        seconds, memory_mb = row.pop("seconds", math.inf), row.pop("memory_mb", math.inf)
        fits = seconds <= limits.seconds and memory_mb <= limits.memory_mb
        return Verdict(**{name: row[name] for name in row if name != "key"}) if fits else None

    found, _ = store.find_rows(prefix, wanted, read)
    return found


def check_errors(
    what: str,
    places: Sequence[tuple[str, int]],
    verdicts: Sequence[Verdict],
    how: Verification,
) -> None:
    """Raise ScoringError if a verifier failed on more than it may; `places` are prompt and sample."""
    failed = [(p, v) for p, v in zip(places, verdicts, strict=True) if v.credit is None]
    if len(failed) <= how.max_error_share * len(places):
        return
    (prompt, sample), verdict = failed[0]
    raise ScoringError(
        f"{what}: {len(failed)} of {len(places)} completions could not be verified, more than "
        f"verification.max_error_share {how.max_error_share:g}; the first is sample {sample} of "
        f"{prompt}: {verdict.reason}"
    )


def run_verifiers(plan: StagePlan, jobs: Sequence[Job]) -> Iterator[tuple[int, Verdict]]:
    """Yield (number of the job, verdict) as they come; raises like `verify_all` and `score`."""
    own: list[tuple[int, tuple[Verifier, Mapping[str, Any], str]]] = []
    provided: dict[Provided, list[int]] = {}
    for number, (judge, document, text) in enumerate(jobs):
        if isinstance(judge, Provided):
            provided.setdefault(judge.model_copy(update={"metric": ""}), []).append(number)
        else:
            own.append((number, (judge, document, text)))
    for place, verdict in _verified(plan, [job for _, job in own]):
        yield own[place][0], verdict
    for asked, numbers in provided.items():
        yield from _provided(plan, asked, {number: jobs[number] for number in numbers})


def _verified(
    plan: StagePlan, jobs: Sequence[tuple[Verifier, Mapping[str, Any], str]]
) -> Iterator[tuple[int, Verdict]]:
    how = plan.config.verification
    return verify_all(
        jobs,
        workers=workers_of(plan),
        seconds=how.seconds,
        memory_mb=how.memory_mb,
        nltk_data=plan.nltk_data,
        total=len(jobs),
        kinds=frozenset(verifier.kind for verifier, _, _ in jobs),
    )


def _provided(
    plan: StagePlan, task: Provided, jobs: Mapping[int, Job]
) -> Iterator[tuple[int, Verdict]]:
    """Each completion is judged once for all metrics of a task."""
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

    def judge(part: list[list[int]]) -> list[Outcome]:
        cases: list[ProviderCase] = [jobs[numbers[0]][1:] for numbers in part]
        return [one for _, one in score(provider, request, cases, limits_of(plan))]

    with ThreadPoolExecutor(workers_of(plan)) as pool:
        for part, judged in zip(parts, pool.map(judge, parts), strict=True):
            outcomes = run_programs(judged, limits_of(plan), workers_of(plan))
            for numbers, outcome in zip(part, outcomes, strict=True):
                for number in numbers:
                    yield number, _verdict(jobs[number], outcome)


def _verdict(job: Job, outcome: Outcome) -> Verdict:
    judge, _, text = job
    assert isinstance(judge, Provided)
    return storable(verdict_of(judge.metric, outcome, text))

"""Tier5: what each verifier says of each completion, through the score store.

A verdict is kept with the checkpoint's scores and found again by what it depends on: verifier, what
that reads of the document, and the completion's text. The limits that it was reached under stand
beside it: under wider ones it would be the same, under narrower ones it is asked for again, as is that
of a verifier that failed.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import fingerprint, unordered
from evaluation.grading.judging import judge_all
from evaluation.prefill.provided import limits_of
from evaluation.providers.score import Limits
from evaluation.settings.computing import Verification
from evaluation.settings.generation import Judged
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import Judge
from evaluation.store import ScoreStore, StoredScore
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
    """By verifier, a verdict for each of a task's cases in their order.

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
    for number, verdict in judge_all(plan, jobs):
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
        """Stores what is fresh, but for failures: what failed once may succeed elsewhere."""
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
    found: dict[str, Verdict] = {}
    for _, part in store.holding(prefix, wanted):
        for row in part.table.to_pylist():
            key = row.pop("key")
            seconds, memory_mb = row.pop("seconds", math.inf), row.pop("memory_mb", math.inf)
            if seconds <= limits.seconds and memory_mb <= limits.memory_mb:
                found[key] = Verdict(**row)
        wanted -= found.keys()
    return found


def check_errors(
    what: str,
    places: Sequence[tuple[str, int]],
    verdicts: Sequence[Verdict],
    how: Verification,
) -> None:
    """Raises ScoringError if a verifier failed on more than it may; `places` are prompt and sample."""
    failed = [(p, v) for p, v in zip(places, verdicts, strict=True) if v.credit is None]
    if len(failed) <= how.max_error_share * len(places):
        return
    (prompt, sample), verdict = failed[0]
    raise ScoringError(
        f"{what}: {len(failed)} of {len(places)} completions could not be verified, more than "
        f"verification.max_error_share {how.max_error_share:g}; the first is sample {sample} of "
        f"{prompt}: {verdict.reason}"
    )

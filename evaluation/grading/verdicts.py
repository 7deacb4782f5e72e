"""Tier5: what each verifier says of each completion, through the score store.

A verdict is kept with the checkpoint's scores and found again by what it depends on: verifier, what
that reads of the document, and the completion's text. A verifier that failed is asked again.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import fingerprint
from evaluation.settings.config import Verification
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import Verifier
from evaluation.store import ScoreStore, StoredScore
from evaluation.verification.pool import verify_all
from evaluation.verification.verdicts import Verdict

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("credit", pa.float64()),
        ("answer", pa.string()),
        ("reason", pa.string()),
        ("weight", pa.float64()),
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
    plan: StagePlan, store: ScoreStore, name: str, cases: Sequence[Case]
) -> dict[str, list[Verdict]]:
    """By verifier, a verdict for each of a task's cases in their order.

    Raises:
        ScoringError: more verdicts failed than `verification.max_error_share` allows.
    """
    verdicts = {
        view: _by_one(plan, store, f"verdicts-{name}-{view}", verifier, cases)
        for view, verifier in plan.suite.generation_tasks[name].views.items()
    }
    for view, found in verdicts.items():
        _check_errors(f"{name}: {view}", cases, found, plan.config.verification)
    return verdicts


def _by_one(
    plan: StagePlan, store: ScoreStore, item: str, verifier: Verifier, cases: Sequence[Case]
) -> list[Verdict]:
    settings = {"protocol": TIERS["tier5"].protocol, "verifier": verifier.model_dump(mode="json")}
    keys = [_key(verifier.NEEDS, case) for case in cases]
    known = _stored(store, store.prefix(item, settings))
    asked = {key: case for key, case in zip(keys, cases, strict=True) if key not in known}
    jobs = [(verifier, case.document, case.text) for case in asked.values()]
    places, how = list(asked), plan.config.verification
    fresh = verify_all(
        jobs,
        workers=how.workers or len(os.sched_getaffinity(0)),
        seconds=how.seconds,
        memory_mb=how.memory_mb,
        nltk_data=plan.nltk_data,
        total=len(jobs),
    )
    while found := {places[index]: verdict for index, verdict in islice(fresh, _PART)}:
        known |= found
        table = _table(found)
        if table.num_rows:
            store.put_part(item, settings, StoredScore(table, {}))
    return [known[key] for key in keys]


def _key(needs: Iterable[str], case: Case) -> str:
    return fingerprint([{need: case.document.get(need) for need in needs}, case.text])


def _stored(store: ScoreStore, prefix: str) -> dict[str, Verdict]:
    rows: Iterator[dict[str, Any]]
    rows = (row for part in store.parts(prefix) for row in part.table.to_pylist())
    return {row.pop("key"): Verdict(**row) for row in rows}


def _table(found: Mapping[str, Verdict]) -> pa.Table:
    """Those that are verdicts: what failed once may succeed on another machine."""
    rows = [{"key": k, **vars(one)} for k, one in found.items() if one.credit is not None]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _check_errors(
    what: str, cases: Sequence[Case], verdicts: Sequence[Verdict], how: Verification
) -> None:
    failed = [(c, v) for c, v in zip(cases, verdicts, strict=True) if v.credit is None]
    if len(failed) <= how.max_error_share * len(cases):
        return
    case, verdict = failed[0]
    raise ScoringError(
        f"{what}: {len(failed)} of {len(cases)} completions could not be verified, more than "
        f"verification.max_error_share {how.max_error_share:g}; the first is sample {case.sample} of "
        f"{case.prompt}: {verdict.reason}"
    )

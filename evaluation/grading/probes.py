"""Tier4: stored answers and the checks that they must pass."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.grading.checks.run import run_checks
from evaluation.grading.thinking import checked_part
from evaluation.metrics.rates import COLUMNS
from evaluation.settings.probes import Probe


def grade_answers(
    probes: Mapping[str, Probe],
    keys: Mapping[str, str],
    answers: Sequence[pa.Table],
    answer_after: str | None = None,
) -> pa.Table:
    """Checks the answer to every probe; a table of `rates.COLUMNS` in the order of the suite.

    `keys` names each probe's answer, `answers` are tables of `scoring.prompts.SCHEMA`; checks read
    what follows `answer_after`.

    Raises:
        ScoringError: where an answer is missing, or a check itself fails.
    """
    stored = {row["key"]: row for table in answers for row in table.to_pylist()}
    rows = []
    for name, probe in probes.items():
        answer = stored.get(keys.get(name, ""))
        if answer is None:
            raise ScoringError(f"probe {name} has no stored answer; score this checkpoint again")
        rows.append(check_answer(name, probe, answer, answer_after))
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def check_answer(
    name: str, probe: Probe, answer: Mapping[str, Any], answer_after: str | None = None
) -> dict[str, Any]:
    """A row of the table; thinking and white space around an answer are no part of it for checks."""
    results = run_checks(name, probe.checks, checked_part(answer["response"], answer_after))
    return {
        **{key: value for key, value in answer.items() if key != "key"},
        "id": name,
        "category": probe.category,
        "headline": probe.headline,
        "checks": [vars(result) for result in results],
    }


def generations(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of `tier4_sft_native_generations.jsonl`."""
    columns = [name for name in COLUMNS.names if name not in ("headline", "checks")]
    rows: list[dict[str, Any]] = table.select(columns).to_pylist()
    return rows

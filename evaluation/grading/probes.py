"""Tier4: stored answers and the checks that they must pass, which read what follows a model's thinking."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.grading.checks.registry import run_checks
from evaluation.metrics.rates import COLUMNS
from evaluation.scoring.stored_completions import Completion
from evaluation.settings.generation import read_part
from evaluation.settings.suites import Probe

ENDS = (
    "</think>",
    "</thinking>",
    "</thought>",
    "</reasoning>",
    "</seed:think>",
    "[/THINK]",
    "<|END_THINKING|>",
    "◁/think▷",
    "<|channel|>final<|message|>",
)
"""What ends the thinking of models that think, as their chat templates write it."""

_EMPTY = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>\s*</\1>[^\S\n]*")


def end_of_thinking(answer_after: str | None, template: str | None) -> str | None:
    """Return the suite's `answer_after`, or else the mark that the chat template itself has."""
    return answer_after or next((mark for mark in ENDS if mark in (template or "")), None)


def checked_part(response: str, mark: str | None) -> str:
    """Return what checks read: what follows the mark, without an empty thought and outer space.

    An indentation that all lines have is such white space, too.
    """
    return textwrap.dedent(_EMPTY.sub("", read_part(response, mark)).strip("\n")).strip()


def check_answers(
    probes: Mapping[str, Probe],
    texts: Mapping[str, str],
    answers: Mapping[str, Completion],
    answer_after: str | None,
) -> pa.Table:
    """Check the answer to every probe.

    Args:
        probes: Those of the suite.
        texts: What the model was asked, by probe.
        answers: What it wrote.
        answer_after: The mark behind which checks read.

    Returns:
        A table of `rates.COLUMNS` in the order of the suite.

    Raises:
        ScoringError: where an answer is missing, or a check itself fails.
    """
    rows = []
    for name, probe in probes.items():
        if name not in answers:
            raise ScoringError(f"probe {name} has no stored answer; score this checkpoint again")
        answer = answers[name]
        row = {
            "id": name,
            "category": probe.category,
            "headline": probe.headline,
            "prompt": texts[name],
            "response": answer.text,
            "stop_reason": answer.stop_reason,
            "prompt_tokens": answer.prompt_tokens,
            "response_tokens": answer.tokens,
        }
        checked = run_checks(name, probe.checks, checked_part(answer.text, answer_after))
        rows.append(row | {"checks": [vars(result) for result in checked]})
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def generations(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of `tier4_sft_native_generations.jsonl`."""
    columns = [name for name in COLUMNS.names if name not in ("headline", "checks")]
    rows: list[dict[str, Any]] = table.select(columns).to_pylist()
    return rows

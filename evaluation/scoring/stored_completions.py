"""Completions in the score store: one row for each sample, found again by what it depends on."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from evaluation.files import fingerprint
from evaluation.prefill.models import TaskPromptLine
from evaluation.scoring.answers import cut_again
from evaluation.store import ScoreStore

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("text", pa.string()),
        ("stop_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
    ]
)
"""One row for each sample; `key` is its `sample_key`, `text` is not cut."""


@dataclass(frozen=True)
class Completion:
    """A sample as it is judged: cut at the first stop string."""

    text: str
    stop_reason: str
    prompt_tokens: int
    tokens: int


def prompt_key(prompt: TaskPromptLine) -> str:
    """What a completion depends on beside checkpoint and decoding settings."""
    return fingerprint([list(prompt.tokens), prompt.max_new_tokens])


def sample_key(prompt: str, sample: int) -> str:
    return f"{prompt}-{sample}"


def stored_completions(
    store: ScoreStore, prefix: str, stops: Sequence[str]
) -> dict[str, Completion]:
    """By sample key, those that these stop strings leave complete."""
    found: dict[str, Completion] = {}
    for part in store.parts(prefix):
        for row in part.table.to_pylist():
            cut = cut_again(row["text"], row["stop_reason"], stops)
            if cut is not None:
                text, reason = cut
                found[row["key"]] = Completion(
                    text, reason, row["prompt_tokens"], row["completion_tokens"]
                )
    return found

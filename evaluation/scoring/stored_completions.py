"""Completions in the score store: one row for each sample, found again by what it depends on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evaluation.files import fingerprint
from evaluation.prefill.schema import Prompt
from evaluation.scoring.answers import Stopping, StopSearch, cut_again
from evaluation.store import ScoreStore

STOP = "stop"
"""Of a part's summary: the stop strings that its completions ended at."""

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("text", pa.string()),
        ("stop_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("tokens", pa.list_(pa.int32())),
    ]
)
"""One row for each sample; `key` is its `sample_key`, `text` is not cut, `tokens` are its ids."""

Count = Callable[[Sequence[int]], int]
"""How many of a completion's tokens a model writes before it is stopped."""


@dataclass(frozen=True)
class Completion:
    """A sample as it is judged: cut at the first stop string."""

    text: str
    stop_reason: str
    prompt_tokens: int
    tokens: int


def prompt_key(prompt: Prompt) -> str:
    """What a completion depends on beside checkpoint and decoding settings."""
    return fingerprint([list(prompt.tokens), prompt.max_new_tokens])


def sample_key(prompt: str, sample: int) -> str:
    return f"{prompt}-{sample}"


def stored_completions(
    store: ScoreStore,
    prefix: str,
    keys: Iterable[str],
    stops: Sequence[str],
    count: Count | None = None,
) -> tuple[dict[str, Completion], dict[str, Mapping[str, Any]]]:
    """By sample key, those that these stop strings leave complete; by name, their parts' summaries.

    One that other stop strings had ended has as many tokens as `count` gives; without it, as many
    as were generated.
    """
    found, used, wanted = dict[str, Completion](), dict[str, Mapping[str, Any]](), set(keys)
    for name, part in store.holding(prefix, wanted):
        is_other = set(part.summary.get(STOP, stops)) != set(stops)
        for row in part.table.to_pylist():
            cut = cut_again(row["text"], row["stop_reason"], stops)
            if cut is not None and row["key"] in wanted:
                text, reason = cut
                tokens = row["completion_tokens"]
                if count and is_other and reason == "stop_string":
                    tokens = count(row["tokens"])
                found[row["key"]] = Completion(text, reason, row["prompt_tokens"], tokens)
                used[name] = part.summary
        wanted -= found.keys()
    return found, used


def until_stopped(stopping: Stopping) -> Count:
    """As generation does it: token by token, until a stop string is complete."""

    def count(tokens: Sequence[int]) -> int:
        search = StopSearch(stopping)
        ends = (n for n in range(1, len(tokens) + 1) if search.reached(list(tokens[:n])))
        return next(ends, len(tokens))

    return count

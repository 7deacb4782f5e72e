"""Completions in the score store: a row for each, found again by what it depends on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import fingerprint
from evaluation.prefill.caches import Prompt
from evaluation.scoring.answers import Stopping, StopSearch, cut_again, stopping_with
from evaluation.settings.plan import StagePlan
from evaluation.store import ScoreStore

STOP = "stop"
"""Key of a part's summary: the stop strings that its completions ended at."""

COMPLETIONS = pa.schema(
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
    """Return what an answer depends on, next to checkpoint, decoding settings and stop rules."""
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
    """Return those that these stop strings leave complete, by key; by name, their summaries.

    One that other stop strings had ended has as many tokens as `count` gives; without it, as many
    as were generated.
    """

    def read(row: Mapping[str, Any], summary: Mapping[str, Any]) -> Completion | None:
        cut = cut_again(row["text"], row["stop_reason"], stops)
        if cut is None:
            return None
        text, reason = cut
        tokens = row["completion_tokens"]
        is_other = set(summary.get(STOP, stops)) != set(stops)
        if count and is_other and reason == "stop_string":
            tokens = count(row["tokens"])
        return Completion(text, reason, row["prompt_tokens"], tokens)

    return store.find_rows(prefix, keys, read)


def counted_completions(
    plan: StagePlan,
    store: ScoreStore,
    name: str,
    prefix: str,
    keys: Sequence[str],
    stops: Sequence[str],
) -> tuple[dict[str, Completion], dict[str, Mapping[str, Any]]]:
    """Return all of these, with as many tokens as a model writes until it is stopped.

    The tokenizer is loaded where completions were generated with other stop strings. Raises
    ScoringError, which calls them by `name`, where one is not stored.
    """

    @lru_cache
    def count() -> Count:
        from evaluation.prefill.tokenizers import load_tokenizer

        tokenizer = load_tokenizer(str(plan.tokenizer_folder), use_fast=plan.tokenizer.use_fast)
        return until_stopped(stopping_with(tokenizer, (), stops))

    found, used = stored_completions(store, prefix, keys, stops, lambda tokens: count()(tokens))
    if not found.keys() >= set(keys):
        raise ScoringError(
            f"{name}: a completion is missing from the store; score this checkpoint again"
        )
    return found, used


def until_stopped(stopping: Stopping) -> Count:
    """Return a count as generation does it: token by token, until a stop string is complete."""

    def count(tokens: Sequence[int]) -> int:
        search = StopSearch(stopping)
        ends = (n for n in range(1, len(tokens) + 1) if search.reached(list(tokens[:n])))
        return next(ends, len(tokens))

    return count

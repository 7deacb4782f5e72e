"""Completions in the score store: a row for each, found by what it depends on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.fingerprints import fingerprint
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
    """Return what an answer depends on, next to checkpoint, decoding settings and stop rules.

    Args:
        prompt: A prefilled prompt.

    Returns:
        A fingerprint of its tokens and of how many may follow.
    """
    return fingerprint([list(prompt.tokens), prompt.max_new_tokens])


def sample_key(prompt: str, sample: int) -> str:
    """Return the key of one sample's row.

    Args:
        prompt: The prompt's `prompt_key`.
        sample: Index of the sample, from 0.

    Returns:
        Both, joined.
    """
    return f"{prompt}-{sample}"


def stored_completions(
    store: ScoreStore,
    prefix: str,
    keys: Iterable[str],
    stops: Sequence[str],
    count: Count | None = None,
) -> tuple[dict[str, Completion], dict[str, Mapping[str, Any]]]:
    """Return the completions that these stop strings leave complete.

    Args:
        store: Scores of one checkpoint.
        prefix: How the names of the item's scores in the store begin.
        keys: The `sample_key` of each requested sample.
        stops: Stop strings that count now.
        count: Counts tokens of a completion that other stop strings had ended; None takes as many
            as were generated.

    Returns:
        Completions by key, and the summaries of the parts they are in by the part's name.
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
    """Return all of these completions, with as many tokens as a model writes until it is stopped.

    The tokenizer is loaded where completions were generated with other stop strings.

    Args:
        plan: The stage, which has the tokenizer.
        store: Scores of one checkpoint.
        name: What an error calls the item.
        prefix: How the names of the item's scores in the store begin.
        keys: The `sample_key` of each requested sample.
        stops: Stop strings that count now.

    Returns:
        Completions by key, and the summaries of the parts they are in by the part's name.

    Raises:
        ScoringError: When a completion is not stored.
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
    """Return a count as generation does it: token by token, until a stop string is complete.

    Args:
        stopping: The rules for ending an answer.

    Returns:
        A function that takes a completion's ids, and counts those up to its stop string.
    """

    def count(tokens: Sequence[int]) -> int:
        search = StopSearch(stopping)
        ends = (n for n in range(1, len(tokens) + 1) if search.reached(list(tokens[:n])))
        return next(ends, len(tokens))

    return count

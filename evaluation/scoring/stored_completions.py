"""Read completions from the score store, which has a row for each sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import fingerprint
from evaluation.prefill.caches import Prompt
from evaluation.scoring.answers import Stopping, StopSearch, cut_again
from evaluation.settings.plan import StagePlan
from evaluation.store import ScoreStore

STOP = "stop"
"""Key in a part's summary: the stop strings that its completions were generated with."""

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
"""One row for each sample: its `sample_key`, uncut text, stop reason, token counts and token ids."""


@dataclass(frozen=True)
class StoredCompletion:
    """A sample as it is verified: cut at the first stop string."""

    text: str
    stop_reason: str
    prompt_tokens: int
    tokens: int


def prompt_key(prompt: Prompt) -> str:
    """Return the key of a prompt among those of one item: of its tokens and the most new ones."""
    return fingerprint([list(prompt.tokens), prompt.max_new_tokens])


def sample_key(prompt: str, sample: int) -> str:
    """Return the key of one sample's row: the prompt's, a hyphen, and the index from 0."""
    return f"{prompt}-{sample}"


def counted_completions(
    plan: StagePlan,
    store: ScoreStore,
    name: str,
    prefix: str,
    keys: Sequence[str],
    stops: Sequence[str],
) -> tuple[dict[str, StoredCompletion], dict[str, Mapping[str, Any]]]:
    """Return all requested completions, with the number of tokens until generation would stop.

    The tokenizer is loaded only if completions were generated with other stop strings. Raises
    ScoringError when a completion is not stored.
    """

    @lru_cache
    def stopping() -> Stopping:
        from evaluation.tokenizers.loading import load_tokenizer

        tokenizer = load_tokenizer(plan.tokenizer_folder, use_fast=plan.tokenizer.use_fast)
        return Stopping(frozenset(), tuple(stops), tokenizer.decode_answer)

    def read(row: Mapping[str, Any], summary: Mapping[str, Any]) -> StoredCompletion | None:
        cut = cut_again(row["text"], row["stop_reason"], stops)
        if cut is None:
            return None
        is_other = set(summary.get(STOP, stops)) != set(stops)
        tokens = row["completion_tokens"]
        if is_other and cut[1] == "stop_string":
            tokens = until_stopped(stopping(), row["tokens"])
        return StoredCompletion(*cut, row["prompt_tokens"], tokens)

    completions, used = store.find_rows(prefix, keys, read)
    if not completions.keys() >= set(keys):
        raise ScoringError(
            f"{name}: a completion is missing from the store; score this checkpoint again"
        )
    return completions, used


def until_stopped(stopping: Stopping, tokens: Sequence[int]) -> int:
    """Return how many tokens are generated until a stop string is complete."""
    search = StopSearch(stopping, ())
    ends = (n for n in range(1, len(tokens) + 1) if search.reached(list(tokens[:n])))
    return next(ends, len(tokens))

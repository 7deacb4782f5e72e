"""Tier2: perplexity of a slice of packed text."""

import math
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.prefill.caches import SliceCache
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks
from evaluation.store import StoredScore

SCHEMA = pa.schema(
    [
        ("block", pa.int32()),
        ("nats", pa.float64()),
        ("tokens", pa.int32()),
        ("bytes", pa.int64()),
    ]
)


def score_slice(
    engine: Engine, cache: SliceCache, attention: Literal["block", "document"]
) -> StoredScore:
    """Scores every block; see `score_blocks` for what each kind of attention predicts."""
    starts = cache.document_starts if attention == "document" else None
    nats, tokens = score_blocks(engine, cache.tokens, starts, progress=_label(cache.meta))
    columns = [np.arange(len(nats)), nats, tokens, scored_bytes(cache, attention)]
    table = pa.table([pa.array(column) for column in columns], names=SCHEMA.names).cast(SCHEMA)
    return StoredScore(table, {**summarize_blocks(table), "attention": attention})


def scored_bytes(cache: SliceCache, attention: Literal["block", "document"]) -> NDArray[np.int64]:
    """UTF-8 bytes of the text of each block's scored tokens; (blocks,)."""
    total = np.array(cache.block_bytes.numpy(), dtype=np.int64)
    if attention == "document" and cache.start_bytes is not None:
        length = cache.tokens.shape[1]
        starts, sizes = cache.document_starts.numpy(), cache.start_bytes.numpy()
        inside = starts % length > 0  # a block's token 0 never counts
        np.subtract.at(total, starts[inside] // length, sizes[inside])
    return total


def summarize_blocks(table: pa.Table) -> dict[str, Any]:
    """Perplexity, nats per token and bits per byte over the blocks of a table.

    Bits per byte makes models with different tokenizers comparable: the information of all scored
    tokens over the UTF-8 bytes of all scored text, whatever it was cut into. In detail:

    1. It is a ratio of sums, not a mean of ratios: blocks of long words weigh by their bytes.
    2. The first token of a block is context: neither its nats nor its bytes count.
    3. A separator between documents is predicted, so its nats count; it has no bytes.
    4. With document attention a document's first token is not scored either: its bytes do not count.

    Raises:
        NonFiniteError: names the block.
        ScoringError: nothing is scored.
    """
    nats, tokens, text = (table[name].to_numpy() for name in ("nats", "tokens", "bytes"))
    broken = np.flatnonzero(~np.isfinite(nats))
    if len(broken):
        raise NonFiniteError(f"block {table['block'][broken[0]]}: its loss is NaN or infinite")
    if not tokens.sum() or not text.sum():
        raise ScoringError("no token of the slice is scored: its blocks are too short or empty")
    nats_per_token = float(nats.sum() / tokens.sum())
    return {
        "ppl": _perplexity(nats_per_token),
        "nats_per_token": nats_per_token,
        "bits_per_byte": float(nats.sum() / math.log(2) / text.sum()),
        "tokens": int(tokens.sum()),
        "blocks": len(nats),
        "bytes": int(text.sum()),
    }


def _label(meta: dict[str, Any]) -> str:
    return f"Tier2 {meta['slice'].get('dataset') or 'files'}" if "slice" in meta else "Tier2"


def _perplexity(nats_per_token: float) -> float:
    try:
        return math.exp(nats_per_token)
    except OverflowError:
        raise NonFiniteError(
            f"the loss of {nats_per_token:.0f} nats a token has no finite perplexity; the model's "
            "weights may be damaged"
        ) from None

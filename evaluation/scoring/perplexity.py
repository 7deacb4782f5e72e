"""Tier2: score the perplexity of slices of packed text."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.metrics.perplexity import check_blocks
from evaluation.metrics.positions import FIRST
from evaluation.prefill.caches import SliceCache
from evaluation.results.columns import BLOCKS, arrow_schema
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.session import Job
from evaluation.settings.sources import Attention
from evaluation.settings.tiers import TIERS
from evaluation.store import StoredScore

SCHEMA = arrow_schema(BLOCKS[1:])  # the first one names the item


def score_slices(job: Job, slices: Mapping[str, SliceCache]) -> dict[str, Any]:
    """Score the slices that are not stored; return the tier's entry of the job's record."""
    return {"items": {name: _score(job, name, cache) for name, cache in slices.items()}}


def _score(job: Job, name: str, cache: SliceCache) -> dict[str, Any]:
    attention = job.plan.suite.slices[name].attention or "block"
    own = {"protocol": TIERS["tier2"].protocol, "attention": attention, "first_bin": FIRST}
    score = partial(score_slice, job.backend, cache, attention)
    return job.item(name, own, cache.meta, score)


def score_slice(backend: EngineBackend, cache: SliceCache, attention: Attention) -> StoredScore:
    """Score every block of a slice; `EngineBackend.block_nats` describes both kinds of attention."""
    starts = cache.document_starts if attention == "document" else None
    nats = backend.block_nats(cache.tokens, starts, label=_label(cache.meta))
    amounts = [np.arange(len(nats.nats)), nats.nats, nats.tokens, _scored_bytes(cache, attention)]
    by_position = [nats.nats_by_position, nats.tokens_by_position]
    columns = [pa.array(column) for column in (*amounts, *(one.tolist() for one in by_position))]
    table = pa.table(columns, names=SCHEMA.names).cast(SCHEMA)
    check_blocks(table)
    return StoredScore(table, {})


def _scored_bytes(cache: SliceCache, attention: Attention) -> NDArray[np.int64]:
    """Return the UTF-8 bytes of each block's scored tokens, (blocks,)."""
    total = np.array(cache.block_bytes.numpy(), dtype=np.int64)
    if attention == "document" and cache.start_bytes is not None:
        length = cache.tokens.shape[1]
        starts, sizes = cache.document_starts.numpy(), cache.start_bytes.numpy()
        inside = starts % length > 0  # a block's token 0 is never scored
        np.subtract.at(total, starts[inside] // length, sizes[inside])
    return total


def _label(meta: dict[str, Any]) -> str:
    return f"Tier2 {meta['slice'].get('dataset') or 'files'}" if "slice" in meta else "Tier2"

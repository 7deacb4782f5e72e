"""Tier2: score the perplexity of slices of packed text, block by block."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from evaluation.metrics.positions import FIRST
from evaluation.prefill.caches import SliceCache
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.packing import Ints
from evaluation.scoring.engine.rows import score_blocks
from evaluation.scoring.loop import Part, Planned, ScoredItem, Wanted, in_parts
from evaluation.scoring.session import Job
from evaluation.settings.sources import Attention
from evaluation.settings.tiers import TIERS
from evaluation.store import Rows

SCHEMA = pa.schema(
    [
        ("block", pa.int32()),
        ("nats", pa.float64()),
        ("tokens", pa.int32()),
        ("bytes", pa.int64()),
        ("nats_by_position", pa.list_(pa.float64())),
        ("tokens_by_position", pa.list_(pa.int32())),
    ]
)
"""A row for each block."""


def plan_slices(job: Job, slices: Mapping[str, SliceCache]) -> Planned:
    """Return the slices' blocks as items, by their numbers."""
    items, entries = list[ScoredItem](), dict[str, dict[str, Any]]()
    for name, cache in slices.items():
        attention, meta = job.plan.suite.slices[name].attention or "block", cache.meta
        own = {"protocol": TIERS["tier2"].protocol, "attention": attention, "first_bin": FIRST}
        rows = Rows(job.store, name, job.key({**own, "data": meta["checksum"]}))
        keys = [str(number) for number in range(len(cache.tokens))]
        items.append(ScoredItem(name, rows, keys, score_slices, (cache, attention)))
        entries[name] = {
            "rows": rows.prefix,
            "blocks": len(keys),
            "data": meta["definition"],
            "data_checksum": meta["checksum"],
            "items": meta["items"],
        }
    return Planned(items, lambda: {"items": entries})


def score_slices(job: Job, wanted: Wanted) -> Iterator[list[Part]]:
    """Score blocks of slices."""
    engine = job.backend.engine
    yield []
    for item, keys in wanted.items():
        cache, attention = item.data
        for part in in_parts(keys, [cache.tokens.shape[1]] * len(keys), job):
            before = engine.tokens_processed
            with job.naming(item.name):
                table = score_part(engine, cache, attention, np.array(part, np.int64))
            keyed = table.add_column(0, "key", pa.array(part, pa.string()))
            yield [Part(item, keyed, engine.tokens_processed - before)]


def score_part(engine: Engine, cache: SliceCache, attention: Attention, blocks: Ints) -> pa.Table:
    """Score some blocks, in ascending order."""
    starts = _starts_in(cache, blocks) if attention == "document" else None
    by_position = score_blocks(engine, cache.tokens[torch.from_numpy(blocks)], starts)
    sums = (part.sum(axis=1) for part in by_position)
    sizes = _scored_bytes(cache, attention)[blocks]
    lists = (part.tolist() for part in by_position)
    columns = [pa.array(column) for column in (blocks, *sums, sizes, *lists)]
    return pa.table(columns, names=SCHEMA.names).cast(SCHEMA)


def _starts_in(cache: SliceCache, blocks: Ints) -> torch.Tensor:
    """Return where documents start in some blocks alone, as flat positions."""
    length, starts = cache.tokens.shape[1], cache.document_starts.numpy()
    inside = starts[np.isin(starts // length, blocks)]
    return torch.from_numpy(np.searchsorted(blocks, inside // length) * length + inside % length)


def _scored_bytes(cache: SliceCache, attention: Attention) -> Ints:
    """Return the UTF-8 bytes of each block's scored tokens, (blocks,)."""
    total = np.array(cache.block_bytes.numpy(), dtype=np.int64)
    if attention == "document" and cache.start_bytes is not None:
        length = cache.tokens.shape[1]
        starts, sizes = cache.document_starts.numpy(), cache.start_bytes.numpy()
        inside = starts % length > 0  # a block's token 0 is never scored
        np.subtract.at(total, starts[inside] // length, sizes[inside])
    return total

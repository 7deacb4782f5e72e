"""The one loop of a job: what the store lacks of each item is scored, and stored part by part.

A killed job loses at most the part in flight, and what is stored is never scored again. Jobs may share
a checkpoint: each scores the keys whose hash falls to it, and their parts meet in the store.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from evaluation.processes import progress
from evaluation.scoring.session import Job
from evaluation.store import Rows, StoredScore

log = logging.getLogger(__name__)

PART_PASSES = 32
"""Forward passes after which scores are stored."""


@dataclass(frozen=True, eq=False)
class ScoredItem:
    """What is scored under one name: its rows in the store, the keys of all rows, and what `score` reads."""

    name: str
    rows: Rows
    keys: Sequence[str]
    score: "Scorer"
    data: Any = None


class Part(NamedTuple):
    """Rows of an item that are finished, and the tokens that they took."""

    item: ScoredItem
    table: pa.Table
    tokens: int
    about: Mapping[str, Any] = {}
    """What the summary of these rows says besides their cost."""


Wanted = Mapping[ScoredItem, Sequence[str]]
Scorer = Callable[[Job, Wanted], Iterator[list[Part]]]
"""Scores the keys that items lack; it yields parts that were finished together, and none once loaded."""


class Planned(NamedTuple):
    """A tier's items, and what returns its entry of the record once all of them are stored."""

    items: list[ScoredItem]
    entry: Callable[[], dict[str, Any]]


class Share(NamedTuple):
    """Which part of all keys a job scores: `number` of `total`, from 1 on."""

    number: int
    total: int

    def has(self, key: str) -> bool:
        """Return whether a key falls to this part."""
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        return int.from_bytes(digest) % self.total == self.number - 1


ALL = Share(1, 1)


def score_lacking(job: Job, items: Sequence[ScoredItem], share: Share) -> None:
    """Score and store the rows that items lack, those of one scorer together; log what it cost.

    Tiers are in their order. Blocks of Tier2 fill the window, and of Tier3 the longest questions are first,
    so that memory which does not suffice runs out at the beginning.
    """
    wanted: dict[Scorer, dict[ScoredItem, list[str]]] = {}
    for item in items:
        if keys := [key for key in item.rows.lacking(item.keys) if share.has(key)]:
            wanted.setdefault(item.score, {})[item] = keys
    count = sum(len(keys) for of_scorer in wanted.values() for keys in of_scorer.values())
    log.info("%d of %d rows are not stored", count, sum(len(set(item.keys)) for item in items))
    if not count:
        return
    begun, tokens = time.perf_counter(), 0
    with progress("scoring", count, "row") as bar:
        for score, of_scorer in wanted.items():
            start = time.perf_counter()
            for parts in score(job, of_scorer):
                tokens += _store(job, parts, time.perf_counter() - start)
                bar.set_postfix_str(", ".join(dict.fromkeys(part.item.name for part in parts)))
                bar.update(sum(part.table.num_rows for part in parts))
                start = time.perf_counter()
    seconds = time.perf_counter() - begun
    log.info(
        "scored %d rows: %d tokens in %.1f s (%.0f tokens/s)",
        count, tokens, seconds, tokens / max(seconds, 1e-9),
    )  # fmt: skip


def _store(job: Job, parts: Sequence[Part], seconds: float) -> int:
    """Store parts that were finished together, each with its share of the seconds; return their tokens."""
    tokens = sum(part.tokens for part in parts)
    for part in parts:
        cost = job.cost(seconds * part.tokens / max(tokens, 1), part.tokens)
        part.item.rows.add(StoredScore(part.table, {**cost, **part.about}))
    return tokens


def in_parts(keys: Sequence[str], sizes: Sequence[int], job: Job) -> Iterator[list[str]]:
    """Yield consecutive keys, of sizes in tokens, that take PART_PASSES forward passes together."""
    part, tokens = list[str](), 0
    for key, size in zip(keys, sizes, strict=True):
        part.append(key)
        tokens += size
        if tokens >= PART_PASSES * job.backend.row_tokens:
            yield part
            part, tokens = [], 0
    if part:
        yield part

"""One job: a checkpoint scored on all that a stage evaluates, and its tier files written.

Every item goes through the score store: what is there is taken, what is not is scored and kept at
once, so a job that was killed goes on after its last finished item. The model is loaded only if
something is missing.
"""

import importlib.metadata
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.errors import EvaluationError
from evaluation.grading.accuracy import summarize_choices
from evaluation.prefill.caches import SliceCache, TaskCache, read_meta, read_slice, read_task
from evaluation.prefill.probes import ProbeCache, read_probes
from evaluation.prefill.tokenizers import load_tokenizer
from evaluation.scoring.choices import score_task
from evaluation.scoring.perplexity import score_slice
from evaluation.scoring.probes import answer_probes
from evaluation.scoring.results import Subject, TierFiles
from evaluation.scoring.session import Session
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import Normalization
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore, StoredScore

log = logging.getLogger(__name__)

PACKAGES = ("torch", "transformers", "safetensors", "numpy", "pyarrow")


@dataclass(frozen=True)
class Caches:
    """Everything that prefill made for a stage, read and checked."""

    slices: dict[str, SliceCache] = field(default_factory=dict)
    tasks: dict[str, TaskCache] = field(default_factory=dict)
    probes: ProbeCache | None = None

    @property
    def vocab_size_needed(self) -> int:
        metas = [cache.meta for cache in self.slices.values()]
        metas += [cache.meta for cache in self.tasks.values()]
        metas += [self.probes.meta] if self.probes else []
        return max(int(meta["vocab_size_needed"]) for meta in metas)


def read_caches(plan: StagePlan) -> Caches:
    """Reads all caches of a stage; raises CacheError for the first missing or corrupt one."""
    return Caches(
        slices={name: read_slice(plan.slice_folder(name)) for name in plan.suite.slices},
        tasks={name: read_task(plan.task_folder(name)) for name in plan.suite.tasks},
        probes=read_probes(plan.probes_folder) if plan.suite.probes else None,
    )


class Job:
    """Scores items of one checkpoint through the store."""

    def __init__(self, plan: StagePlan, session: Session, tokenizer: dict[str, Any]) -> None:
        self.plan = plan
        self.session = session
        self.tokenizer = tokenizer
        self.store = ScoreStore(plan.scores, session.checkpoint.identity)

    def run(self, item: str, key: dict[str, Any], score: Callable[[], StoredScore]) -> StoredScore:
        """The stored score of an item, scored now if there is none."""
        key = {
            **key,
            "tokenizer": self.tokenizer["fingerprint"],
            "sequence_length": self.plan.sequence_length,
            **self.session.numeric_settings(),
        }
        stored = self.store.get(item, key)
        if stored is not None:
            log.info("%s: already scored", item)
            return stored
        before = self.session.tokens_processed  # loads the model, which is no part of the time
        start = time.perf_counter()
        try:
            fresh = score()
        except EvaluationError as error:
            raise type(error)(f"{self.session.checkpoint.path}: {item}: {error}") from error
        spent = {
            "seconds": round(time.perf_counter() - start, 3),
            "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
            "tokens_processed": self.session.tokens_processed - before,
        }
        fresh = replace(fresh, summary={**spent, **fresh.summary})
        self.store.put(item, key, fresh)
        return fresh

    @property
    def _prefix_token(self) -> int:
        """What stands before an empty context: BOS, or EOS if there is none."""
        bos, eos = self.tokenizer["bos_token_id"], self.tokenizer["eos_token_id"]
        return int(eos if bos is None else bos)

    def tier2(self, caches: dict[str, SliceCache]) -> dict[str, StoredScore]:
        key = {"protocol": TIERS["tier2"].protocol, "attention": self.plan.suite.attention}
        return {
            name: self.run(
                name, {**key, "data": cache.meta["checksum"]}, partial(self._score_slice, cache)
            )
            for name, cache in caches.items()
        }

    def tier3(self, caches: dict[str, TaskCache]) -> dict[str, StoredScore]:
        scores = {}
        for name, cache in caches.items():
            key = {"protocol": TIERS["tier3"].protocol, "data": cache.meta["checksum"]}
            primary = self.plan.suite.tasks[name].primary
            score = self.run(name, key, partial(self._score_task, cache, primary))
            # The primary metric is no part of the key: it is another view of the same scores.
            summary = {**score.summary, **summarize_choices(score.table, primary)}
            scores[name] = replace(score, summary=summary)
        return scores

    def _score_slice(self, cache: SliceCache) -> StoredScore:
        return score_slice(self.session.engine, cache, self.plan.suite.attention)

    def _score_task(self, cache: TaskCache, primary: Normalization) -> StoredScore:
        return score_task(
            self.session.engine,
            cache,
            primary=primary,
            max_length=self.plan.sequence_length,
            prefix_token=self._prefix_token,
        )

    def tier4(self, cache: ProbeCache) -> StoredScore:
        key = {
            "protocol": TIERS["tier4"].protocol,
            "data": cache.meta["checksum"],
            "stop": cache.meta["stop"],
            "eos_token_ids": cache.meta["eos_token_ids"],
        }
        return self.run(
            "sft_native",
            key,
            lambda: answer_probes(
                self.session.model,
                load_tokenizer(
                    str(self.plan.tokenizer_folder), use_fast=self.plan.tokenizer.use_fast
                ),
                cache,
                batch=self.plan.config.scoring.generation_batch,
                device=self.session.numerics.device,
            ),
        )


def score_checkpoint(plan: StagePlan, subject: Subject) -> Path:
    """Scores one checkpoint on a stage's suite and writes its tier files.

    Raises:
        EvaluationError: for a missing cache, an unreadable, disagreeing or meanwhile replaced
            checkpoint, or a score that cannot be computed; what was scored stays in the store.
    """
    tokenizer = read_meta(plan.tokenizer_folder)
    caches = read_caches(plan)
    session = Session(plan, subject.checkpoint, caches.vocab_size_needed)
    job = Job(plan, session, tokenizer)
    slices = job.tier2(caches.slices)
    tasks = job.tier3(caches.tasks)
    probes = job.tier4(caches.probes) if caches.probes else None
    # Written later than a replaced checkpoint, the files would look up to date to Snakemake.
    session.check_unchanged()
    files = TierFiles(plan, subject, session, tokenizer)
    if caches.slices:
        files.write_tier2(caches.slices, slices)
    if caches.tasks:
        files.write_tier3(caches.tasks, tasks)
    if caches.probes and probes:
        files.write_tier4(caches.probes, probes)
    job.store.pack()
    return subject.folder

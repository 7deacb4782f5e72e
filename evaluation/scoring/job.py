"""One job: a checkpoint scored on all that a stage evaluates.

Every item goes through the score store: what is there is taken, what is not is scored and kept at
once, so a job that was killed goes on after its last finished item. The model is loaded only if
something is missing. What the job leaves is a record that names the scores; `grading.collect` makes
the tier files of them.
"""

import importlib.metadata
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from evaluation.checkpoints.state import checkpoint_state
from evaluation.checkpoints.subjects import Subject
from evaluation.checkpoints.training import consumed_tokens
from evaluation.dependencies.caches import (
    CacheStates,
    check_current,
    describe_entry,
    stage_entries,
)
from evaluation.dependencies.steps import SCORE, score_key
from evaluation.errors import EvaluationError
from evaluation.prefill.entries import read_meta
from evaluation.records import Record, write_record
from evaluation.scoring.engine.busy import BUSY
from evaluation.scoring.external import run_external
from evaluation.scoring.session import Session
from evaluation.scoring.stage_data import read_stage_data
from evaluation.scoring.tiers import SCORERS
from evaluation.settings.plan import StagePlan
from evaluation.store import ScoreStore, StoredScore

log = logging.getLogger(__name__)

Asked = TypeVar("Asked")

PACKAGES = ("torch", "transformers", "safetensors", "numpy", "pyarrow")


class Job:
    """Scores items of one checkpoint through the store; `names` collects the scores it used."""

    def __init__(self, plan: StagePlan, session: Session, tokenizer: dict[str, Any]) -> None:
        self.plan = plan
        self.session = session
        self.tokenizer = tokenizer
        self.store = ScoreStore(plan.scores, session.checkpoint.identity)
        self.names: list[str] = []
        self._busy = BUSY.seconds()

    def key(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """All that decides an item's numbers."""
        return {
            **own,
            "tokenizer": self.tokenizer["fingerprint"],
            "sequence_length": self.plan.sequence_length,
            **self.session.numeric_settings(),
        }

    def item(
        self,
        name: str,
        own: Mapping[str, Any],
        meta: Mapping[str, Any],
        score: Callable[[], StoredScore],
    ) -> dict[str, Any]:
        """Scores an item unless it is stored; returns what the record says of it."""
        key = self.key({**own, "data": meta["checksum"]})
        found = self.store.find(name, key)
        if found is None:
            found = self.store.path(name, key).name
            self.store.put(name, key, self.measured(name, score))
        else:
            log.info("%s: already scored", name)
        self.names.append(found)
        return {
            "score": self.names[-1],
            "data": meta["definition"],
            "data_checksum": meta["checksum"],
            "items": meta["items"],
        }

    def lacking(self, prefix: str, asked: Mapping[str, Asked]) -> dict[str, Asked]:
        """What of `asked`, by the keys of its rows, is not stored; what is used of the store is named."""
        wanted = set(asked)
        for name, part in self.store.holding(prefix, wanted):
            self.names.append(name)
            wanted.difference_update(part.table["key"].to_pylist())
        return {key: one for key, one in asked.items() if key in wanted}

    def keep(self, item: str, key: Mapping[str, Any], part: StoredScore) -> None:
        """Stores a part of an item, which the record names."""
        self.names.append(self.store.put_part(item, key, part))

    def measured(self, name: str, score: Callable[[], StoredScore]) -> StoredScore:
        """A score with what it took; its errors name checkpoint and item."""
        before = self.session.backend.tokens_processed  # loads the model, which takes no part
        start = time.perf_counter()
        with self.naming(name):
            fresh = score()
        spent = {
            "seconds": time.perf_counter() - start,
            "tokens_processed": self.session.backend.tokens_processed - before,
        }
        return self.stamped(fresh, spent)

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """Errors of the block name checkpoint and item."""
        try:
            yield
        except EvaluationError as error:
            raise type(error)(f"{self.session.checkpoint.path}: {name}: {error}") from error

    def stamped(self, score: StoredScore, spent: Mapping[str, Any]) -> StoredScore:
        """A score with what it took, on which machine, and with which packages."""
        packages = {name: importlib.metadata.version(name) for name in PACKAGES}
        machine = {**self.session.machine(), **self._busy_since()}
        stamp = {**spent, "seconds": round(spent["seconds"], 3), "packages": packages, **machine}
        return replace(score, summary={**score.summary, **stamp})

    def _busy_since(self) -> dict[str, float]:
        """Seconds in which a GPU had work, since this was last asked."""
        if self.session.backend.device != "cuda":
            return {}
        before, self._busy = self._busy, BUSY.seconds()
        return {"busy_seconds": round(self._busy - before, 3)}

    @property
    def prefix_token(self) -> int:
        """What stands before an empty context: BOS, or EOS if there is none."""
        bos, eos = self.tokenizer["bos_token_id"], self.tokenizer["eos_token_id"]
        return int(eos if bos is None else bos)


def score_subject(subject: Subject) -> Record:
    """Scores one checkpoint of a stage, or tells from its record why it cannot be.

    An error that lies with the checkpoint is recorded: others go on without it.

    Raises:
        EvaluationError: any other, such as a missing cache or a GPU that does not answer; what was
            scored stays in the store.
    """
    plan, state = subject.plan, checkpoint_state(subject.checkpoint)
    caches = current_caches(plan)
    about: dict[str, Any] = {"caches": caches, "checkpoint_state": state}
    seen = consumed_tokens(subject.checkpoint)  # as long as it is there
    try:
        made, store, names = _score(subject)
    except EvaluationError as error:
        if not error.is_final:
            raise
        log.debug("where it happened:", exc_info=True)
        return write_record(
            subject.folder, SCORE, score_key(subject), error=str(error), about=about
        )
    store.pack()
    files = store.holders(names)
    about |= {**made, "consumed_tokens": seen}
    return write_record(subject.folder, SCORE, score_key(subject), files, about=about)


def current_caches(plan: StagePlan) -> dict[str, dict[str, str]]:
    """What is known of each cache of a stage, by folder; raises CacheError if one is not current."""
    states = CacheStates()
    return {
        entry.place: describe_entry(entry, check_current(states, entry))
        for entry in stage_entries(plan)
    }


def _score(subject: Subject) -> tuple[dict[str, Any], ScoreStore, list[str]]:
    """What the record says of the scores, the store, and the names of the scores in it."""
    plan = subject.plan
    if plan.stage.command:
        return run_external(subject)
    tokenizer = read_meta(plan.tokenizer_folder)
    data = read_stage_data(plan)
    metas = [cache.meta for caches in data.values() for cache in caches.values()]
    needed = max(int(meta["vocab_size_needed"]) for meta in metas)
    session = Session(plan, subject.checkpoint, needed)
    job = Job(plan, session, tokenizer)
    tiers = {name: SCORERS[name](job, caches) for name, caches in data.items()}
    session.check_unchanged()
    about = {
        "checkpoint": str(session.checkpoint.path),
        "identity": session.checkpoint.identity,
        "tokenizer": {key: tokenizer[key] for key in ("name", "fingerprint", "prepend_bos")},
        "sequence_length": plan.sequence_length,
        **session.numeric_settings(),
        "tiers": tiers,
    }
    return about, job.store, job.names

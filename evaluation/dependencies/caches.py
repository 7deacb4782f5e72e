"""List the caches that a stage reads, and check whether they are what the configuration asks for now.

Records alone decide, with sizes and times of files: neither torch nor transformers is imported, and no
data is read.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from evaluation.errors import CacheError, SourceError
from evaluation.prefill.definitions import (
    Define,
    saved_description,
    tokenizer_definition,
    tokenizer_state,
)
from evaluation.prefill.entries import STEP, check_entry, read_meta
from evaluation.prefill.tiers import PREFILLS
from evaluation.records import Record, is_intact, read_record, record_path
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

State = Literal["current", "missing", "stale"]
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class CacheEntry:
    """A folder that prefill makes: a tier's, or the tokenizer where there is no tier."""

    plan: StagePlan
    tier: TierName | None
    name: str
    folder: Path

    @property
    def kind(self) -> str:
        """Its name in messages: tokenizer, slice, task, …"""
        return "tokenizer" if self.tier is None else TIERS[self.tier].cache.name

    @property
    def record(self) -> Path:
        """File of the entry's record."""
        return record_path(self.folder, STEP)

    @property
    def place(self) -> str:
        """Its name in records of scores: its folder below the cache."""
        return self.folder.relative_to(self.plan.config.cache).as_posix()

    @property
    def is_provided(self) -> bool:
        """Whether it is a provider's task."""
        return self.tier is not None and (self.tier, self.name) in self.plan.provided

    @property
    def is_graded(self) -> bool:
        """Whether it holds documents for grading."""
        return self.tier is not None and PREFILLS[self.tier].define_asked is not None

    @property
    def define_asked(self) -> Define | None:
        """Returns the part of its definition that scores depend on; None if they depend on all of it.

        Scores of an external program depend on all of it, as the program may read any part.
        """
        return (
            PREFILLS[self.tier].define_asked if self.tier and not self.plan.stage.command else None
        )


def stage_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries that scoring a stage reads: the tokenizer, then those of the tiers in order."""
    return [tokenizer_entry(plan), *tier_entries(plan)]


def tokenizer_entry(plan: StagePlan) -> CacheEntry:
    """Return the entry of a stage's tokenizer."""
    return CacheEntry(plan, None, plan.tokenizer.name, plan.tokenizer_folder)


def tier_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries of a stage's tiers, in the order of the suite; they need not be there."""
    return [
        CacheEntry(plan, tier, name, plan.cache_folder(tier, name))
        for tier in plan.tiers
        for name in plan.cache_entries(tier)
    ]


def graded_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries of a stage that hold documents for grading."""
    return [entry for entry in tier_entries(plan) if entry.is_graded]


class AskedOnce:
    """A consistent view of the disk: each question is answered once."""

    def __init__(self) -> None:
        self._answers: dict[tuple[object, ...], Any] = {}

    def once(self, ask: Callable[[], Returned], *question: object) -> Returned:
        """Return the answer to a question (the key of a dictionary), computed only the first time."""
        if question not in self._answers:
            self._answers[question] = ask()
        return cast("Returned", self._answers[question])


class CacheStates(AskedOnce):
    """States of cache entries, each read once."""

    def record(self, entry: CacheEntry) -> Record | None:
        """Return the record of an entry."""
        return self.once(lambda: read_record(entry.folder, STEP), "record", entry.folder)

    def state(self, entry: CacheEntry) -> State:
        """Return whether an entry is what the configuration asks for now."""
        return self.once(lambda: self._look(entry), "state", entry.folder)

    def wanted(self, entry: CacheEntry) -> str | None:
        """Return the definition that the configuration gives an entry; None while there is no tokenizer."""
        saved = self.tokenizer(entry.plan)
        return self.once(lambda: definition_of(entry, saved), "wanted", entry.folder)

    def tokenizer(self, plan: StagePlan) -> dict[str, Any] | None:
        """Return a stage's saved tokenizer and chat template for definitions; None if missing or damaged."""
        look = partial(_read_tokenizer, plan)
        return self.once(look, "tokenizer", plan.tokenizer_folder)

    def _look(self, entry: CacheEntry) -> State:
        record = self.record(entry)
        if record is None:  # Snakemake counts a damaged record as made, and would not make it again
            return "stale" if os.path.lexists(entry.record) else "missing"
        if record.key != self.wanted(entry) or not is_intact(record, entry.folder):
            return "stale"
        return "stale" if self.have_sources_changed(entry, record.about.get("state")) else "current"

    def have_sources_changed(self, entry: CacheEntry, recorded: Any) -> bool:
        """Return whether an entry's source files have changed; False where they cannot be read."""
        look = partial(self._have_changed, entry, recorded)
        return self.once(look, "moved", entry.folder, repr(recorded))

    def check_files(self, entry: CacheEntry) -> None:
        """Raise SourceError if an entry is to be made, and its item's `files` name nothing."""
        items = getattr(entry.plan.suite, TIERS[entry.tier].section) if entry.tier else {}
        if getattr(items.get(entry.name), "files", ()) and self.state(entry) != "current":
            assert entry.tier is not None
            PREFILLS[entry.tier].state(entry.plan, entry.name, None)

    def _have_changed(self, entry: CacheEntry, recorded: Any) -> bool:
        try:
            if entry.tier is None:
                return bool(tokenizer_state(entry.plan) != recorded)
            return bool(PREFILLS[entry.tier].state(entry.plan, entry.name, recorded) != recorded)
        except (SourceError, OSError):
            return False


def _read_tokenizer(plan: StagePlan) -> dict[str, Any] | None:
    try:
        meta = read_meta(plan.tokenizer_folder)
        return saved_description(meta) | {"chat_template": meta.get("chat_template")}
    except (CacheError, KeyError):
        return None


def definition_of(
    entry: CacheEntry, tokenizer: Mapping[str, Any] | None, define: Define | None = None
) -> str | None:
    """Return the definition that the configuration gives an entry; None if its tokenizer is missing.

    Args:
        define: Returns a part of the definition; None for the whole.
    """
    if entry.tier is None:
        return tokenizer_definition(entry.plan)
    if not tokenizer:
        return None
    try:
        return (define or PREFILLS[entry.tier].define)(entry.plan, entry.name, tokenizer)
    except (KeyError, SourceError):
        return None


def check_current(states: CacheStates, entry: CacheEntry) -> Record:
    """Return the record of an entry that is current; raise CacheError with what is wrong with it."""
    record = states.record(entry)
    if record is None or states.state(entry) == "missing":
        raise CacheError(f"{entry.folder} is not prefilled; run `snakemake prefill`")
    if states.state(entry) == "stale":
        check_entry(entry.folder, states.wanted(entry) or record.key)  # names what is wrong
        raise CacheError(
            f"{entry.folder} was made from other data than there is now; run `snakemake prefill`"
        )
    return record

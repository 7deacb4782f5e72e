"""The caches that a stage reads: whether they are what the configuration asks for, and what they hold.

Records alone decide: neither torch nor transformers is imported, and no large file is read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from evaluation.errors import CacheError, SourceError
from evaluation.files import fingerprint, unordered
from evaluation.prefill.caches import DOCUMENTS
from evaluation.prefill.definitions import (
    saved_description,
    tokenizer_definition,
    tokenizer_state,
)
from evaluation.prefill.entries import META, STEP, read_meta
from evaluation.prefill.tiers import PREFILLS
from evaluation.records import Record, is_intact, read_record
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

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
    def place(self) -> str:
        """Its name in keys: its folder below the cache."""
        return self.folder.relative_to(self.plan.config.cache).as_posix()

    @property
    def is_graded(self) -> bool:
        """Whether it also holds documents for grading, which scores do not depend on."""
        return self.tier is not None and PREFILLS[self.tier].define_asked is not None


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


def stage_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries that scoring a stage reads: the tokenizer, then those of the tiers in order."""
    return [tokenizer_entry(plan), *tier_entries(plan)]


class AskedOnce:
    """A consistent view of the disk: each question is answered once."""

    def __init__(self) -> None:
        self._answers: dict[tuple[object, ...], Any] = {}

    def once(self, ask: Callable[[], Returned], *question: object) -> Returned:
        """Return the answer to a question (the key of a dictionary), computed only the first time."""
        if question not in self._answers:
            self._answers[question] = ask()
        return cast("Returned", self._answers[question])


class Caches(AskedOnce):
    """The entries of caches as they are on disk, each looked at once."""

    def problem(self, plan: StagePlan) -> str | None:
        """Return what is wrong with the first entry of a stage that cannot be used; None if all can."""
        problems = map(self.entry_problem, stage_entries(plan))
        return next((problem for problem in problems if problem), None)

    def entry_problem(self, entry: CacheEntry) -> str | None:
        """Return why an entry is not what the configuration asks for now; None if it is."""
        return self.once(lambda: self._problem(entry), "problem", entry.folder)

    def asked(self, plan: StagePlan) -> dict[str, list[str]]:
        """Return what a stage's scores depend on of each entry: its definition, and its content."""
        return {entry.place: self._asked(entry) for entry in stage_entries(plan)}

    def documents(self, plan: StagePlan) -> dict[str, list[str]]:
        """Return the same for the documents with which scores are graded."""
        return {e.place: self._documents(e) for e in tier_entries(plan) if e.is_graded}

    def _record(self, entry: CacheEntry) -> Record:
        record = self.once(lambda: read_record(entry.folder, STEP), "record", entry.folder)
        return record or Record(key="")

    def _asked(self, entry: CacheEntry) -> list[str]:
        """A stage's own command may read any part of an entry."""
        record = self._record(entry)
        is_part = entry.is_graded and not entry.plan.stage.command
        asked = record.about.get("asked") if is_part else None
        others = (META,) if asked is None else (META, DOCUMENTS)
        files = {name: state.checksum for name, state in record.files.items() if name not in others}
        content = asked and record.about.get("content")
        return [asked or record.key, content or fingerprint(unordered(files))]

    def _documents(self, entry: CacheEntry) -> list[str]:
        record = self._record(entry)
        documents = record.files.get(DOCUMENTS)
        return [record.key, documents.checksum if documents else ""]

    def _problem(self, entry: CacheEntry) -> str | None:
        record, folder = self._record(entry), entry.folder
        if not record.key:
            return f"{folder} is not prefilled"
        if not is_intact(record, folder):
            return f"{folder} is damaged"
        if record.key != self._definition(entry):
            return f"{folder} was made under other settings than those of the configuration"
        if self._have_sources_changed(entry, record.about.get("state")):
            return f"{folder} was made from other data than there is now"
        return None

    def _definition(self, entry: CacheEntry) -> str | None:
        """Return the definition that the configuration gives an entry; None if its tokenizer is missing."""
        if entry.tier is None:
            return tokenizer_definition(entry.plan)
        folder = entry.plan.tokenizer_folder
        if tokenizer := self.once(lambda: _read_tokenizer(folder), "tokenizer", folder):
            try:
                return PREFILLS[entry.tier].define(entry.plan, entry.name, tokenizer)
            except (KeyError, SourceError):
                return None
        return None

    @staticmethod
    def _have_sources_changed(entry: CacheEntry, recorded: Any) -> bool:
        """Return whether an entry's source files have changed; False where they cannot be read."""
        try:
            if entry.tier is None:
                return bool(tokenizer_state(entry.plan) != recorded)
            return bool(PREFILLS[entry.tier].state(entry.plan, entry.name, recorded) != recorded)
        except (SourceError, OSError):
            return False


def _read_tokenizer(folder: Path) -> Mapping[str, Any] | None:
    try:
        meta = read_meta(folder)
        return saved_description(meta) | {"chat_template": meta.get("chat_template")}
    except (CacheError, KeyError):
        return None

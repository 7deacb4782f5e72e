"""The caches that a stage reads: whether they are what the configuration asks for, and what they hold.

Each entry's meta.json decides: neither torch nor transformers is imported, and no large file is read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from evaluation.errors import CacheError, SourceError
from evaluation.files import fingerprint, unordered
from evaluation.prefill.caches import DOCUMENTS
from evaluation.prefill.entries import is_intact, read_meta, state_in
from evaluation.prefill.tiers import PREFILLS, tokenizer_definition, tokenizer_state
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
        return self.tier is not None and PREFILLS[self.tier].is_graded


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

    def _meta(self, folder: Path) -> Mapping[str, Any]:
        """Return an entry's meta.json; an empty one if it is missing or damaged."""

        def read() -> Mapping[str, Any]:
            try:
                return read_meta(folder)
            except CacheError:
                return {}

        return self.once(read, "meta", folder)

    def _asked(self, entry: CacheEntry) -> list[str]:
        """A stage's own command may read any part of an entry."""
        meta = self._meta(entry.folder)
        is_part = entry.is_graded and not entry.plan.stage.command
        asked = meta.get("asked_definition") if is_part else None
        files = dict(meta.get("checksum", {}))
        if asked is not None:
            files.pop(DOCUMENTS, None)
        content = asked and meta.get("asked_content")
        return [asked or meta.get("definition", ""), content or fingerprint(unordered(files))]

    def _documents(self, entry: CacheEntry) -> list[str]:
        """Rows behind a limit are in no document, but they are counted."""
        meta = self._meta(entry.folder)
        documents, counts = meta.get("checksum", {}).get(DOCUMENTS, ""), meta.get("items", {})
        return [meta.get("definition", ""), documents, fingerprint(unordered(counts))]

    def _problem(self, entry: CacheEntry) -> str | None:
        meta, folder = self._meta(entry.folder), entry.folder
        if not meta:
            return f"{folder} is not prefilled"
        if not is_intact(folder, meta):
            return f"{folder} is damaged"
        if meta.get("definition") != self._definition(entry):
            return f"{folder} was made under other settings than those of the configuration"
        if self._have_sources_changed(entry, state_in(meta)):
            return f"{folder} was made from other data than there is now"
        return None

    def _definition(self, entry: CacheEntry) -> str | None:
        """Return the definition that the configuration gives an entry; None if its tokenizer is missing."""
        if entry.tier is None:
            return tokenizer_definition(entry.plan)
        try:
            tokenizer = self._meta(entry.plan.tokenizer_folder)
            return PREFILLS[entry.tier].define(entry.plan, entry.name, tokenizer)
        except (KeyError, SourceError):
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

"""Which caches a stage reads, and whether they are what the configuration asks for now.

Told from records alone: neither torch nor transformers is imported, and no large file is read.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import CacheError, SourceError
from evaluation.files import fingerprint
from evaluation.prefill.caches import DOCUMENTS, FETCH, META, read_meta
from evaluation.prefill.definitions import folder_state, tokenizer_definition
from evaluation.prefill.entries import STEP, check_entry
from evaluation.prefill.tiers import PREFILLS, Define
from evaluation.records import Record, is_intact, read_record, record_path
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

State = Literal["current", "missing", "stale"]

UNKNOWN = object()
"""The state of a source that cannot be looked at from here."""


@dataclass(frozen=True)
class CacheEntry:
    """A folder that prefill makes: a tier's, or the tokenizer where there is no tier."""

    plan: StagePlan
    tier: TierName | None
    name: str
    folder: Path

    @property
    def kind(self) -> str:
        """What it is called: tokenizer, slice, task, …"""
        return "tokenizer" if self.tier is None else TIERS[self.tier].cache.name

    @property
    def record(self) -> Path:
        return record_path(self.folder, STEP)


def stage_entries(plan: StagePlan) -> list[CacheEntry]:
    """All that scoring a stage reads, the tokenizer first."""
    return [tokenizer_entry(plan), *tier_entries(plan)]


def tokenizer_entry(plan: StagePlan) -> CacheEntry:
    return CacheEntry(plan, None, plan.tokenizer.name, plan.tokenizer_folder)


def tier_entries(plan: StagePlan) -> list[CacheEntry]:
    """Those of a stage's tiers, in the order of the tiers."""
    return [
        CacheEntry(plan, tier, name, plan.cache_folder(tier, name))
        for tier in plan.tiers
        for name in plan.cache_entries(tier)
    ]


@dataclass
class CacheStates:
    """What is known of caches, each looked at once."""

    _states: dict[Path, State] = field(default_factory=dict)
    _wanted: dict[Path, str | None] = field(default_factory=dict)
    _records: dict[Path, Record | None] = field(default_factory=dict)

    def record(self, entry: CacheEntry) -> Record | None:
        if entry.folder not in self._records:
            self._records[entry.folder] = read_record(entry.folder, STEP)
        return self._records[entry.folder]

    def state(self, entry: CacheEntry) -> State:
        if entry.folder not in self._states:
            self._states[entry.folder] = self._look(entry)
        return self._states[entry.folder]

    def wanted(self, entry: CacheEntry) -> str | None:
        """The definition that the configuration gives; None as long as there is no tokenizer."""
        if entry.folder not in self._wanted:
            self._wanted[entry.folder] = self._define(entry)
        return self._wanted[entry.folder]

    def agrees(self, entry: CacheEntry, used: Any, *, graded: bool = False) -> bool:
        """Whether what was made from an entry is what the configuration asks for now.

        `used` is what `describe_entry` gave then, or `describe_documents` for what is graded. Where
        the cache itself is gone or damaged, its definition tells: it will be made anew, of the same
        data.
        """
        record = self.record(entry)
        if record is not None and self.state(entry) == "current":
            return bool(used == (describe_documents if graded else describe_entry)(record))
        if record is not None and record.key == self.wanted(entry) and _moved_on(entry, record):
            return False
        wanted = self.wanted(entry) if graded else self._asked(entry)
        return isinstance(used, dict) and (wanted is None or used.get("definition") == wanted)

    def _asked(self, entry: CacheEntry) -> str | None:
        """The part of the wanted definition that scores depend on."""
        define = entry.tier and PREFILLS[entry.tier].define_asked
        return self._define(entry, define) if define else self.wanted(entry)

    def _look(self, entry: CacheEntry) -> State:
        record = self.record(entry)
        if record is None:
            return "missing"
        if record.key != self.wanted(entry) or not is_intact(record, entry.folder):
            return "stale"
        return "stale" if _moved_on(entry, record) else "current"

    def _define(self, entry: CacheEntry, define: Define | None = None) -> str | None:
        plan = entry.plan
        if entry.tier is None:
            return tokenizer_definition(plan)
        try:
            meta = read_meta(plan.tokenizer_folder)
            return (define or PREFILLS[entry.tier].define)(plan, entry.name, meta)
        except (CacheError, KeyError):
            return None


def check_current(states: CacheStates, entry: CacheEntry) -> Record:
    """The record of an entry that is what the configuration asks for; raises CacheError for any other."""
    record = states.record(entry)
    if record is None or states.state(entry) == "missing":
        raise CacheError(f"{entry.folder} is not prefilled; run `{FETCH}`")
    if states.state(entry) == "stale":
        check_entry(entry.folder, states.wanted(entry) or record.key)  # names what is wrong
        raise CacheError(
            f"{entry.folder} was made from other data than there is now; run `{FETCH}`"
        )
    return record


def describe_entry(record: Record) -> dict[str, str]:
    """What a score keeps of a cache that it was made from: its definition, and its content."""
    asked = record.about.get("asked")
    others = (META,) if asked is None else (META, DOCUMENTS)
    data = {name: state.checksum for name, state in record.files.items() if name not in others}
    return {"definition": asked or record.key, "content": fingerprint(data)}


def describe_documents(record: Record) -> dict[str, str]:
    """What graded answers keep of the documents that they were judged by."""
    documents = record.files.get(DOCUMENTS)
    return {"definition": record.key, "content": documents.checksum if documents else ""}


def graded_entries(plan: StagePlan) -> list[CacheEntry]:
    """Those that hold documents."""
    return [e for e in tier_entries(plan) if e.tier and PREFILLS[e.tier].define_asked]


def documents_used(plan: StagePlan) -> dict[str, dict[str, str]]:
    """What is known of a stage's documents, by the item's name."""
    records = {entry.name: read_record(entry.folder, STEP) for entry in graded_entries(plan)}
    return {name: describe_documents(one) for name, one in records.items() if one is not None}


def _moved_on(entry: CacheEntry, record: Record) -> bool:
    """Whether the files that an entry was made of are others by now."""
    state = source_state(entry)
    return not (state is UNKNOWN or state is None or state == record.about.get("state"))


def source_state(entry: CacheEntry) -> Any:
    """The state of the files that an entry is made of, as prefill writes it into its record.

    None for what lies on the hub or stands in the suite; UNKNOWN where the files cannot be looked at,
    as on a node without the mirrors.
    """
    if entry.tier is None:
        return folder_state(Path(entry.plan.tokenizer.name))
    try:
        origins = PREFILLS[entry.tier].origins(entry.plan, entry.name)
        if not origins or any(origin.files is None for origin in origins):
            return None
        return [origin.state() for origin in origins]
    except (SourceError, OSError):
        return UNKNOWN

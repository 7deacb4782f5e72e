"""Which caches a stage reads, and whether they are what the configuration asks for now.

Told from records alone: neither torch nor transformers is imported, and a large file is read only for
its checksum, where the file system shows another size or time than when it was read.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from evaluation.command_hints import snakemake
from evaluation.errors import CacheError, SourceError
from evaluation.fingerprints import fingerprint, unordered
from evaluation.prefill.caches import DOCUMENTS
from evaluation.prefill.definitions import saved_description, tokenizer_definition, tokenizer_files
from evaluation.prefill.entries import META, STEP, check_entry, read_meta
from evaluation.prefill.states import Checksums, Sources, are_unchanged
from evaluation.prefill.tiers import PREFILLS, Define
from evaluation.records import Record, is_intact, read_record, record_path
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

State = Literal["current", "missing", "stale"]
Answer = TypeVar("Answer")

_BATCH = 32
"""A provider's tasks in a job."""


@dataclass(frozen=True)
class CacheEntry:
    """A folder that prefill makes: a tier's, or the tokenizer where there is no tier."""

    plan: StagePlan
    tier: TierName | None
    name: str
    folder: Path

    @property
    def kind(self) -> str:
        """What messages call it: tokenizer, slice, task, …"""
        return "tokenizer" if self.tier is None else TIERS[self.tier].cache.name

    @property
    def record(self) -> Path:
        """File of the entry's record."""
        return record_path(self.folder, STEP)

    @property
    def place(self) -> str:
        """How records of scores name it: its folder below the cache."""
        return self.folder.relative_to(self.plan.config.cache).as_posix()

    @property
    def define_asked(self) -> Define | None:
        """Gives the part of its definition that scores depend on; None if that is the whole.

        A command may read whatever the entry holds.
        """
        return (
            PREFILLS[self.tier].define_asked if self.tier and not self.plan.stage.command else None
        )


def stage_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries that scoring a stage reads.

    Args:
        plan: The stage.

    Returns:
        The tokenizer, then the tiers' entries in the order of the tiers.
    """
    return [tokenizer_entry(plan), *tier_entries(plan)]


def tokenizer_entry(plan: StagePlan) -> CacheEntry:
    """Return the entry of a stage's tokenizer.

    Args:
        plan: The stage.

    Returns:
        The entry, which need not be there.
    """
    return CacheEntry(plan, None, plan.tokenizer.name, plan.tokenizer_folder)


def tier_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries of a stage's tiers.

    Args:
        plan: The stage.

    Returns:
        Entries in the order of the tiers, then of the suite; they need not be there.
    """
    return [
        CacheEntry(plan, tier, name, plan.cache_folder(tier, name))
        for tier in plan.tiers
        for name in plan.cache_entries(tier)
    ]


def provided_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries that are a provider's tasks.

    Args:
        plan: The stage.

    Returns:
        Some of `tier_entries`, in their order.
    """
    return [e for e in tier_entries(plan) if e.tier and (e.tier, e.name) in plan.provided]


def provided_batches(plans: Iterable[StagePlan]) -> Iterator[tuple[StagePlan, list[CacheEntry]]]:
    """Yield a provider's tasks that one job prefills, as its libraries take long to import.

    Args:
        plans: Stages, which may share entries.

    Yields:
        A stage and entries of one of its tiers; each entry is in one batch only.
    """
    seen: set[Path] = set()
    for plan in plans:
        for tier in plan.tiers:
            mine = [e for e in provided_entries(plan) if e.tier == tier and e.folder not in seen]
            seen |= {entry.folder for entry in mine}
            yield from ((plan, mine[n : n + _BATCH]) for n in range(0, len(mine), _BATCH))


class Answers:
    """Answers of one look at the disk: each question is asked once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Any] = {}

    def once(self, ask: Callable[[], Answer], *question: object) -> Answer:
        """Return the answer to a question, computed when it is first asked.

        Args:
            ask: Computes the answer.
            *question: Identifies the question, as a key of a dictionary.

        Returns:
            What `ask` returned the first time.
        """
        if question not in self._known:
            self._known[question] = ask()
        return cast("Answer", self._known[question])


class CacheStates(Answers):
    """What is known of caches."""

    def record(self, entry: CacheEntry) -> Record | None:
        """Return the record of an entry.

        Args:
            entry: An entry, which need not be there.

        Returns:
            The record; None if there is none.
        """
        return self.once(lambda: read_record(entry.folder, STEP), "record", entry.folder)

    def state(self, entry: CacheEntry) -> State:
        """Return whether an entry is what the configuration asks for now.

        Args:
            entry: An entry, which need not be there.

        Returns:
            `current`, `stale` or `missing`.
        """
        return self.once(lambda: self._look(entry), "state", entry.folder)

    def wanted(self, entry: CacheEntry) -> str | None:
        """Return the definition that the configuration gives an entry.

        Args:
            entry: An entry, which need not be there.

        Returns:
            The definition; None as long as there is no tokenizer.
        """
        saved = self.tokenizer(entry.plan)
        return self.once(lambda: _define(entry, saved), "wanted", entry.folder)

    def tokenizer(self, plan: StagePlan) -> dict[str, Any] | None:
        """Return what definitions take from a stage's saved tokenizer.

        Args:
            plan: The stage.

        Returns:
            Its description, with its chat template; None if it is missing or damaged.
        """
        look = partial(_read_tokenizer, plan)
        return self.once(look, "tokenizer", plan.tokenizer_folder)

    def agrees(
        self, entry: CacheEntry, used: Any, tokenizer: Any = None, *, graded: bool = False
    ) -> bool:
        """Return whether what was made from an entry is what the configuration asks for now.

        Where the cache itself is missing or damaged, its definition and the data that it was made of
        decide: of the same data the same cache will be made.

        Args:
            entry: An entry, which need not be there.
            used: What `describe_entry` gave then, or `describe_documents` for what is graded.
            tokenizer: What `tokenizer` gave then; it counts where the saved one is missing by now.
            graded: Whether `used` is about documents.

        Returns:
            Whether nothing has changed; False also where nothing was recorded.
        """
        if not isinstance(used, dict):
            return False
        record = self.record(entry)
        if record is not None and self.state(entry) == "current":
            now = describe_documents(record) if graded else describe_entry(entry, record)
            return all(used.get(name) == now[name] for name in ("definition", "content"))
        if "state" in used and self._moved_on(entry, used["state"]):
            return False
        define = None if graded else entry.define_asked
        wanted = _define(entry, self.tokenizer(entry.plan) or tokenizer, define)
        return wanted is None or used.get("definition") == wanted

    def _look(self, entry: CacheEntry) -> State:
        record = self.record(entry)
        if record is None:  # a damaged one is there for Snakemake, which would make nothing
            return "stale" if os.path.lexists(entry.record) else "missing"
        if record.key != self.wanted(entry) or not is_intact(record, entry.folder):
            return "stale"
        return "stale" if self._moved_on(entry, record.about.get("state")) else "current"

    def _moved_on(self, entry: CacheEntry, known: Any) -> bool:
        """Return whether the files that an entry was made of hold something else by now.

        Not where they cannot be looked at, as on a node without the mirrors. `known` is what is kept of
        them, alike for all that was made of the same entry.
        """
        look = partial(self._hold_something_else, entry, known)
        return self.once(look, "moved", entry.folder, repr(known))

    def _hold_something_else(self, entry: CacheEntry, known: Any) -> bool:
        plan = entry.plan
        results = Path(plan.config.results)
        checksums = self.once(lambda: Checksums(results), "checksums", results)
        try:
            if entry.tier is None:
                now = [tokenizer_files(Path(plan.tokenizer.name))]
                return not are_unchanged(now, known, checksums)
            origins = PREFILLS[entry.tier].origins(plan, entry.name)
            return not Sources(plan, origins, checksums).are_as(known)
        except (SourceError, OSError):
            return False


def _read_tokenizer(plan: StagePlan) -> dict[str, Any] | None:
    try:
        meta = read_meta(plan.tokenizer_folder)
        return saved_description(meta) | {"chat_template": meta.get("chat_template")}
    except (CacheError, KeyError):
        return None


def _define(
    entry: CacheEntry, tokenizer: Mapping[str, Any] | None, define: Define | None = None
) -> str | None:
    """Return an entry's definition, or a part of it; None if that takes a tokenizer, and there is none."""
    if entry.tier is None:
        return tokenizer_definition(entry.plan)
    if not tokenizer:
        return None
    try:
        return (define or PREFILLS[entry.tier].define)(entry.plan, entry.name, tokenizer)
    except (KeyError, SourceError):
        return None


def check_current(states: CacheStates, entry: CacheEntry) -> Record:
    """Return the record of an entry that is what the configuration asks for.

    Args:
        states: States of caches that are known already.
        entry: The entry.

    Returns:
        The entry's record.

    Raises:
        CacheError: The entry is missing, damaged, or was made from something else.
    """
    record = states.record(entry)
    if record is None or states.state(entry) == "missing":
        raise CacheError(f"{entry.folder} is not prefilled; run `{snakemake('prefill')}`")
    if states.state(entry) == "stale":
        check_entry(entry.folder, states.wanted(entry) or record.key)  # names what is wrong
        raise CacheError(
            f"{entry.folder} was made from other data than there is now; run `{snakemake('prefill')}`"
        )
    return record


def describe_entry(entry: CacheEntry, record: Record) -> dict[str, Any]:
    """Return what a score keeps of a cache that it was made from.

    Args:
        entry: The entry.
        record: Its record.

    Returns:
        Definition and content, of the part that scores depend on, and state of the data.
    """
    asked = record.about.get("asked") if entry.define_asked else None
    others = (META,) if asked is None else (META, DOCUMENTS)
    data = {name: state.checksum for name, state in record.files.items() if name not in others}
    content = asked and record.about.get("content")
    known = {"definition": asked or record.key, "content": content or fingerprint(unordered(data))}
    return known | {"state": record.about.get("state")}


def describe_documents(record: Record) -> dict[str, Any]:
    """Return what graded answers keep of the documents that they were verified by.

    Args:
        record: Record of the entry that holds them.

    Returns:
        Definition, content, and state of the data.
    """
    documents = record.files.get(DOCUMENTS)
    content = documents.checksum if documents else ""
    return {"definition": record.key, "content": content, "state": record.about.get("state")}


def graded_entries(plan: StagePlan) -> list[CacheEntry]:
    """Return the entries that hold documents for grading.

    Args:
        plan: The stage.

    Returns:
        Some of `tier_entries`, in their order.
    """
    return [e for e in tier_entries(plan) if e.tier and PREFILLS[e.tier].define_asked]

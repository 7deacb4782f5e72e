"""Which caches a stage reads, and whether they are what the configuration asks for now.

Told from records alone: neither torch nor transformers is imported, and no large file is read.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import CacheError, SourceError
from evaluation.files import fingerprint
from evaluation.prefill.caches import META, read_meta
from evaluation.prefill.definitions import (
    folder_state,
    probes_definition,
    saved_description,
    slice_definition,
    task_definition,
    tokenizer_definition,
)
from evaluation.prefill.entries import STEP
from evaluation.prefill.sources import Origin, locate
from evaluation.records import Record, is_intact, read_record, record_path
from evaluation.settings.plan import StagePlan
from evaluation.settings.sources import Source
from evaluation.settings.suites import Task

Kind = Literal["tokenizer", "slice", "task", "probes"]
State = Literal["current", "missing", "stale"]

UNKNOWN = object()
"""The state of a source that cannot be looked at from here."""


@dataclass(frozen=True)
class CacheEntry:
    """A folder that prefill makes; `name` is the item's, or the stage's for its prompts."""

    plan: StagePlan
    kind: Kind
    name: str
    folder: Path

    @property
    def record(self) -> Path:
        return record_path(self.folder, STEP)


def stage_entries(plan: StagePlan) -> list[CacheEntry]:
    """All that scoring a stage reads, the tokenizer first."""
    entries = [CacheEntry(plan, "tokenizer", plan.tokenizer.name, plan.tokenizer_folder)]
    entries += [CacheEntry(plan, "slice", n, plan.slice_folder(n)) for n in plan.suite.slices]
    entries += [CacheEntry(plan, "task", n, plan.task_folder(n)) for n in plan.suite.tasks]
    if plan.suite.probes:
        entries.append(CacheEntry(plan, "probes", plan.name, plan.probes_folder))
    return entries


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

    def agrees(self, entry: CacheEntry, used: Any) -> bool:
        """Whether what a score was made from is what the configuration asks for now.

        `used` is what `describe_entry` gave then. Where the cache itself is gone or damaged, its
        definition tells: it will be made anew, of the same data.
        """
        record = self.record(entry)
        if record is not None and self.state(entry) == "current":
            return bool(used == describe_entry(record))
        if record is not None and record.key == self.wanted(entry) and _moved_on(entry, record):
            return False
        wanted = self.wanted(entry)
        return isinstance(used, dict) and (wanted is None or used.get("definition") == wanted)

    def _look(self, entry: CacheEntry) -> State:
        record = self.record(entry)
        if record is None:
            return "missing"
        if record.key != self.wanted(entry) or not is_intact(record, entry.folder):
            return "stale"
        return "stale" if _moved_on(entry, record) else "current"

    def _define(self, entry: CacheEntry) -> str | None:
        plan = entry.plan
        if entry.kind == "tokenizer":
            return tokenizer_definition(plan)
        try:
            meta = read_meta(plan.tokenizer_folder)
            about = saved_description(meta)
        except (CacheError, KeyError):
            return None
        if entry.kind == "slice":
            return slice_definition(plan, entry.name, about)
        if entry.kind == "task":
            return task_definition(plan, entry.name, about)
        template = plan.suite.chat_template or meta.get("chat_template")
        return None if template is None else probes_definition(plan, template, about)


def describe_entry(record: Record) -> dict[str, str]:
    """What a score keeps of a cache that it was made from: its definition, and its content."""
    data = {name: state.checksum for name, state in record.files.items() if name != META}
    return {"definition": record.key, "content": fingerprint(data)}


def _moved_on(entry: CacheEntry, record: Record) -> bool:
    """Whether the files that an entry was made of are others by now."""
    state = source_state(entry)
    return not (state is UNKNOWN or state is None or state == record.about.get("state"))


def source_state(entry: CacheEntry) -> Any:
    """The state of the files that an entry is made of, as prefill writes it into its record.

    None for what lies on the hub; UNKNOWN where the files cannot be looked at, as on a node without
    the mirrors.
    """
    if entry.kind == "tokenizer":
        return folder_state(Path(entry.plan.tokenizer.name))
    if entry.kind == "probes":
        return None
    suite = entry.plan.suite
    item = suite.slices[entry.name] if entry.kind == "slice" else suite.tasks[entry.name]
    try:
        origins = _origins(item, entry.plan.config.mirrors)
        if any(origin.files is None for origin in origins):
            return None
        return [origin.state() for origin in origins]
    except (SourceError, OSError):
        return UNKNOWN


def _origins(item: Source, mirrors: dict[str, str]) -> list[Origin]:
    if not isinstance(item, Task):
        return [locate(item, mirrors)]
    configs = item.configs or (item.config,)
    origins = [locate(item, mirrors, config=config) for config in configs]
    if item.num_fewshot:
        origins += [locate(item, mirrors, config=c, split=item.fewshot_split) for c in configs]
    return origins

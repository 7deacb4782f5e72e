"""What need not be scored or prefilled again, as far as can be told from outside."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.errors import CacheError
from evaluation.prefill.caches import check_files, read_meta
from tests.histories.model import Model
from tests.histories.standin import counts

Signature = tuple[int, int]


@dataclass
class Economy:
    """`stored` are scores by results folder; `made` are caches with the definition they have."""

    folder: Path
    stored: dict[str, set[str]] = field(default_factory=dict)
    made: dict[str, tuple[str, Signature]] = field(default_factory=dict)

    def forget_scores(self) -> None:
        self.stored.clear()

    def forget_caches(self) -> None:
        self.made.clear()

    def before(self) -> None:
        """To be called right before a run."""
        self._count_file.unlink(missing_ok=True)
        now = _entries(self.folder / "cache")
        self.made = {
            name: (definition, now[name])
            for name, (definition, _) in self.made.items()
            if name in now
        }

    def after(self, model: Model, *, is_cut: bool) -> Iterator[str]:
        """What a run did in vain. One that was cut short may have lost its last scores."""
        stored = self.stored.setdefault(str(model.config["results"]), set())
        fresh: set[str] = set()
        for line in counts(self._count_file):
            if line["key"] in stored | fresh:
                yield f"scored again: {line['tier']} {line['name']}"
            fresh.add(line["key"])
        if not is_cut:
            stored |= fresh
        wanted = _definitions(model)
        for name, signature in _entries(self.folder / "cache").items():
            definition, known = self.made.get(name, (None, None))
            if signature == known:
                continue
            now = wanted.get(name.partition("/")[2])
            if definition is not None and definition == now:
                yield f"prefilled again: {name}"
            if now is not None and not (is_cut and _is_damaged(self.folder / "cache" / name)):
                self.made[name] = (now, signature)

    def scored(self) -> int:
        """How many items the last run scored."""
        return len(counts(self._count_file))

    @property
    def _count_file(self) -> Path:
        return self.folder / "counts.jsonl"


def _is_damaged(entry: Path) -> bool:
    """Whether it was hit and a run that was cut short has not come to it."""
    try:
        check_files(entry, meta := read_meta(entry), tuple(meta["checksum"]))
    except CacheError:
        return True
    return False


def _entries(cache: Path) -> dict[str, Signature]:
    """Folders of the cache that are whole, and which writing of them is there."""
    found = {}
    for path in cache.rglob("meta.json"):
        status = path.stat()
        found[str(path.parent.relative_to(cache))] = (status.st_ino, status.st_mtime_ns)
    return found


VIEWS = {
    "slices": {"group"},
    "tasks": {"group", "primary"},
    "probes": {"category", "checks"},
    "generation_tasks": {"group", "primary", "sampling", "stop"},
}
"""Keys that are about what becomes of scores, not about what is asked."""


def _definitions(model: Model) -> dict[str, str]:
    """What every entry of the cache is made from, by its folder below the tokenizer's."""
    found: dict[str, Any] = {"tokenizer": model.protocols.get("PREFILL_TOKENIZER")}
    for stage in model.stages:
        suite = {
            section: {
                name: {key: value for key, value in item.items() if key not in VIEWS[section]}
                for name, item in items.items()
            }
            for section, items in model.suite(stage).items()
        }
        for name, item in suite["slices"].items():
            found[f"ppl_slices/{name}"] = [item, model.protocols.get("PREFILL_SLICE")]
        for name, item in suite["tasks"].items():
            found[f"cf_tasks/{name}"] = [item, model.protocols.get("PREFILL_TASK")]
        for name, item in suite["generation_tasks"].items():
            about = [item, model.protocols.get("PREFILL_GENERATION")]
            found[f"generation_tasks/{name}"] = about
        if suite["probes"]:
            about = [suite["probes"], model.protocols.get("PREFILL_PROBES")]
            found[f"sft_native/{stage}"] = about
    return {name: json.dumps(about) for name, about in found.items()}

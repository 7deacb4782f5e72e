"""What need not be scored or prefilled again, as far as can be told from outside."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.errors import CacheError
from evaluation.prefill.entries import check_files, read_meta
from tests.histories.counting import counts
from tests.histories.model import Model

Signature = tuple[int, int]


@dataclass
class Economy:
    """`stored` are scores by results folder: questions, and the states of the files that were asked.

    `made` are caches with the definition they have, as far as known; `present` are all, right before a
    run. Questions: how many were asked; how many had been asked of the same files; how many of files
    of other times with equal bytes.
    """

    folder: Path
    stored: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    present: dict[str, Signature] = field(default_factory=dict)
    asked: int = 0
    in_vain: int = 0
    of_copies: int = 0

    def before(self) -> None:
        """To be called right before a run."""
        self._count_file.unlink(missing_ok=True)
        self.present = _entries(self.folder / "cache")
        self.made = {name: one for name, one in self.made.items() if name in self.present}

    def after(
        self, model: Model, *, is_cut: bool = False, is_forced: bool = False
    ) -> Iterator[str]:
        """What a run did in vain. One that was cut short may have lost its last scores."""
        yield from self._asked(str(model.config["results"]), is_cut)
        if not is_forced:
            yield from self._prefilled(model, is_cut)

    def forgive(self, model: Model) -> None:
        """After a run that may do again what another did at once, or did just before it was killed."""
        kept = self.in_vain
        for _ in self.after(model, is_cut=True):
            pass
        self.in_vain = kept

    def _asked(self, results: str, is_cut: bool) -> Iterator[str]:
        stored = self.stored.setdefault(results, {})
        fresh: dict[str, set[str]] = {}
        vain: Counter[str] = Counter()
        for line in counts(self._count_file):
            for key in line["keys"]:
                states = stored.get(key, set()) | fresh.get(key, set())
                self.asked += line["tier"] != "verdict"
                vain[f"{line['tier']} {line['name']}"] += line["state"] in states
                self.of_copies += bool(states) and line["state"] not in states
                fresh.setdefault(key, set()).add(line["state"])
        for what, number in vain.items():
            self.in_vain += number
            if number:
                yield f"scored again: {what}, {number} questions"
        if not is_cut:
            for key, states in fresh.items():
                stored.setdefault(key, set()).update(states)

    def _prefilled(self, model: Model, is_cut: bool) -> Iterator[str]:
        wanted = _definitions(model)
        for name, signature in _entries(self.folder / "cache").items():
            if signature == self.present.get(name):
                continue
            now = wanted.get(name.partition("/")[2])
            if now is not None and now == self.made.get(name):
                yield f"prefilled again: {name}"
            if now is not None and not (is_cut and _is_damaged(self.folder / "cache" / name)):
                self.made[name] = now

    def scored(self) -> int:
        """How many questions the last run asked."""
        return sum(len(line["keys"]) for line in counts(self._count_file))

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


ENTRIES = {
    "slices": ("ppl_slices", "PREFILL_SLICE", {"group"}),
    "tasks": ("cf_tasks", "PREFILL_TASK", {"group", "primary"}),
    "probes": ("sft_native", "PREFILL_PROBES", {"category", "checks", "headline"}),
    "generation_tasks": (
        "generation_tasks", "PREFILL_GENERATION", {"group", "primary", "sampling", "stop"},
    ),
}  # fmt: skip
"""By section: folder in the cache, protocol, and keys about what becomes of scores, not what is asked."""

OF_ALL_PROBES = ("stop", "chat_template", "answer_after")
"""Keys of a suite that its prompts are prefilled with."""


def _definitions(model: Model) -> dict[str, str]:
    """What every entry of the cache is made from, by its folder below the tokenizer's."""
    tokenizer = [repr(file) for path, file in model.files.items() if path.startswith("tokenizer/")]
    found: dict[str, Any] = {"tokenizer": [model.protocols.get("PREFILL_TOKENIZER"), tokenizer]}
    for stage, stage_config in model.stages.items():
        suite = model.suite(stage)
        for section, (folder, protocol, views) in ENTRIES.items():
            known = {
                name: [
                    {key: value for key, value in item.items() if key not in views},
                    repr(model.behind(item["dataset"])) if "dataset" in item else None,
                    *(tokenizer, model.protocols.get(protocol)),
                    model.provider_version if "provider" in item else None,
                ]
                for name, item in suite[section].items()
            }
            if section != "probes":
                found |= {f"{folder}/{name}": item for name, item in known.items()}
            elif known:  # of all probes of a stage together
                own = [model.suites[name] for name in stage_config["suites"]]
                whole = [[one.get(key) for key in OF_ALL_PROBES] for one in own]
                found[f"{folder}/{stage}"] = [known, whole]
    return {name: json.dumps(about) for name, about in found.items()}

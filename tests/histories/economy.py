"""What need not be scored or prefilled again, as far as can be told from outside."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.histories.accidents import LOSES_CACHES, LOSES_SCORES
from tests.histories.standin import counts
from tests.histories.world import World

Signature = tuple[int, int]

VIEWS = {
    "slices": {"group"},
    "tasks": {"group", "primary"},
    "probes": {"category", "checks", "headline"},
    "generation_tasks": {"group", "primary", "sampling", "stop"},
}
"""Keys about what becomes of scores, not what is asked: nothing is prefilled again for them."""

EVERYTHING = "*"
PREFILLED_FOR = (
    *("tokenizer_changed", "tokenizer_touched", "provider_upgraded", "provider_reinstalled"),
    *("suites", "suite_key", "suite_extended", "stage_renamed", "stages_swapped", *LOSES_CACHES),
    *("all_times", "touched", "item_removed", "meanwhile", "twice"),
)
"""What may have any cache made again; `order_of_…` of suites and prefill protocols, too."""


@dataclass
class Economy:
    """`stored` are scores by results folder: questions, and the states of the files that were asked.

    `reasons` are names of caches that may be made again, `present` all right before a run. Questions: how
    many were asked; how many had been asked of the same files; how many of files of other times with equal
    bytes.
    """

    world: World
    stored: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    reasons: set[str] = field(default_factory=set)
    present: dict[str, Signature] = field(default_factory=dict)
    asked: int = 0
    in_vain: int = 0
    of_copies: int = 0

    def note(self, name: str, arguments: list[Any]) -> None:
        """An edit or accident is a reason to do again what it concerns."""
        if name in LOSES_SCORES:
            self.stored.clear()
        self.reasons |= set(self._reasons(name, arguments))

    def _reasons(self, name: str, arguments: list[Any]) -> Iterator[str]:
        path = arguments[0] if arguments and isinstance(arguments[0], list) else []
        if (
            name in PREFILLED_FOR
            or (name == "protocol_raised" and arguments[0].startswith("PREFILL"))
        ) or (name.startswith("order_of_") and path[0] == "suites"):
            yield EVERYTHING
        elif name == "data_corrected":  # by the folder of its dataset
            yield from self.world.entries(f"made/{arguments[0].split('/')[1]}")
        elif name.startswith(("data_", "mirror_")):
            yield from self.world.entries(arguments[0])
        elif path[:1] == ["suites"] and path[-1] not in VIEWS.get(path[2], ()):
            yield path[3] if path[2] != "probes" else EVERYTHING
        elif name.startswith("item_"):
            yield from (EVERYTHING if arguments[1] == "probes" else one for one in arguments[2:])

    def before(self) -> None:
        """To be called right before a run."""
        self._count_file.unlink(missing_ok=True)
        self.present = _entries(self.world.folder / "cache")

    def after(self, *, is_cut: bool = False, is_prefilled: bool = False) -> Iterator[str]:
        """What a run did in vain. One that was cut short may have lost its last scores."""
        yield from self._asked(str(self.world.config["results"]), is_cut)
        for name, signature in _entries(self.world.folder / "cache").items():
            is_again = name in self.present and signature != self.present[name]
            if is_again and not {EVERYTHING, name.rpartition("/")[2]} & self.reasons:
                yield f"prefilled again: {name}"
        if is_prefilled:
            self.reasons.clear()

    def forgive(self) -> None:
        """After a run that may do again what another did at once, or did just before it was killed."""
        kept = self.in_vain
        for _ in self.after(is_cut=True):
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

    def scored(self) -> int:
        """How many questions the last run asked."""
        return sum(len(line["keys"]) for line in counts(self._count_file))

    @property
    def _count_file(self) -> Path:
        return self.world.folder / "counts.jsonl"


def _entries(cache: Path) -> dict[str, Signature]:
    """Folders of the cache that are whole, and which writing of them is there."""
    found = {}
    for path in cache.rglob("meta.json"):
        status = path.stat()
        found[str(path.parent.relative_to(cache))] = (status.st_ino, status.st_mtime_ns)
    return found

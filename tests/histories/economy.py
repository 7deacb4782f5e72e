"""What need not be scored again, as far as can be told from outside."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.histories.standin import counts
from tests.histories.world import World


@dataclass
class Economy:
    """`stored` are questions by results folder; how many were asked, and how many of them in vain."""

    world: World
    stored: dict[str, set[str]] = field(default_factory=dict)
    asked: int = 0
    in_vain: int = 0

    def before(self) -> None:
        """To be called right before a run."""
        self._count_file.unlink(missing_ok=True)

    def after(self, *, is_cut: bool = False) -> list[str]:
        """What a run asked in vain. One that was cut short may have lost its last scores."""
        stored = self.stored.setdefault(str(self.world.config["results"]), set())
        vain, now = Counter[str](), set(stored)
        for line in counts(self._count_file):
            self.asked += len(line["keys"])
            vain[f"{line['tier']} {line['name']}"] += len(now & {*line["keys"]})
            now |= {*line["keys"]}
        self.in_vain += vain.total()
        if not is_cut:
            stored |= now
        return [f"scored again: {what}, {number} questions" for what, number in (+vain).items()]

    def scored(self) -> int:
        """How many questions the last run asked."""
        return sum(len(line["keys"]) for line in counts(self._count_file))

    @property
    def _count_file(self) -> Path:
        return self.world.folder / "counts.jsonl"

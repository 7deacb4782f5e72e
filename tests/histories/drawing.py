"""Draws histories as they are played: what is possible depends on what was done before."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.histories import accidents, edits
from tests.histories.history import COMMANDS, Action
from tests.histories.world import World

FEWEST, MOST = 5, 10
MOMENTS = 40
"""Renamed files, in a run that makes all there is about sixty."""

READINGS = 60
"""Texts that a prefill of everything tokenizes are about two hundred."""

WEIGHTS = {
    "accident": 4, "answers": 3, "checkpoints": 5, "command": 4, "meanwhile": 1, "order": 4,
    "settings": 2, "sources": 4, "stages": 6, "suites": 5,
}  # fmt: skip
"""How often something of a kind is done."""

FOLLOWS = {"run": 11, "killed": 3, "stopped": 1, "": 5}


@dataclass
class Drawer:
    """Draws the same histories for the same seed; what it drew often it draws less."""

    dice: random.Random
    drawn: Counter[str] = field(default_factory=Counter)

    def history(self, world: World) -> Iterator[Action]:
        """A first run, mostly, then changes, most with a run behind them, some cut short.

        Each has to be done to the world before the next one is drawn.
        """
        if self.dice.random() < 0.8:
            yield ["run", "all"]
        for _ in range(self.dice.randint(FEWEST, MOST)):
            if {"steps", "bridge"} & world.faults and self.dice.random() < 0.7:
                yield ["repaired"]
            yield self._change(world)
            follows = self._weighted(FOLLOWS)
            if follows == "run":
                others = ["prefill", *world.stages]
                yield ["run", "all" if self.dice.random() < 0.7 else self.dice.choice(others)]
            elif follows:
                yield [follows, self.dice.randint(1, MOMENTS)]

    def _weighted(self, weights: dict[str, int]) -> str:
        return self.dice.choices(list(weights), list(weights.values()))[0]

    def _change(self, world: World) -> Action:
        kind = self._weighted(WEIGHTS)
        if kind == "accident":
            name = self._rare(accidents.ACCIDENTS)
            return [name, *accidents.draw(name, self.dice)]
        if kind == "command":
            name = self._rare(COMMANDS)
            return [name, *self.dice.choice(COMMANDS[name])]
        if kind == "meanwhile":
            how, most = self.dice.choice([("WAIT", MOMENTS), ("READ", READINGS)])
            about = "sources" if how == "READ" else self.dice.choice(["suites", "sources"])
            return [kind, how, self.dice.randint(1, most), self._edit(world, about)]
        return self._edit(world, kind)

    def _rare(self, names: Iterable[str]) -> str:
        """One of these, rather one that was drawn seldom."""
        possible = sorted(names)
        weights = [1 / (1 + self.drawn[name]) ** 2 for name in possible]
        name = self.dice.choices(possible, weights)[0]
        self.drawn[name] += 1
        return name

    def _edit(self, world: World, about: str) -> Action:
        """One that may turn out to be impossible once it is tried."""
        name = self._rare(edits.names_about(about))
        try:
            return [name, *edits.draw(world, name, self.dice)]
        except edits.Impossible:
            return self._edit(world, about)

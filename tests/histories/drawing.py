"""Draws histories: what is done next depends on what was done before, and each kind has its turn."""

import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.histories.accidents import ACCIDENTS
from tests.histories.commands import COMMANDS
from tests.histories.edits import EDITS
from tests.histories.history import Action
from tests.histories.model import Model

FEWEST, MOST = 5, 10
MOMENTS = 40
"""Renamed files, in a run that makes all there is about sixty."""

READINGS = 60
"""Texts that a prefill of everything tokenizes are about two hundred."""

WEIGHTS = {
    "accident": 4,
    "answers": 3,
    "checkpoints": 5,
    "command": 4,
    "order": 4,
    "runs": 1,
    "settings": 3,
    "sources": 4,
    "stages": 4,
    "suites": 5,
}
"""How often something of a kind is done."""

FOLLOWS = {"run": 11, "killed": 3, "stopped": 1, "": 5}


@dataclass
class Drawer:
    """Draws the same histories for the same seed; what it drew often it draws less."""

    beginning: Model
    dice: random.Random
    drawn: Counter[str] = field(default_factory=Counter)

    def history(self) -> list[Action]:
        """A first run, mostly, then changes, most with a run behind them, some cut short."""
        model = self.beginning.copy()
        actions: list[Action] = [["run", "all"]] if self._chance(0.8) else []
        changes = self.dice.randint(FEWEST, MOST)
        while changes > 0:
            action = self._action(model)
            changes -= action[0] != "repaired"
            actions.append(action)
            follows = self._weighted(FOLLOWS)
            if follows == "run":
                actions.append(["run", self._target(model)])
            elif follows and not model.impossible():
                changes -= 1
                actions.append([follows, self.dice.randint(1, MOMENTS)])
        self.drawn.update(str(action[0]) for action in actions)
        plain: list[Action] = json.loads(json.dumps(actions))
        return plain

    def _chance(self, share: float) -> bool:
        return self.dice.random() < share

    def _weighted(self, weights: dict[str, int]) -> str:
        return self.dice.choices(list(weights), list(weights.values()))[0]

    def _named(self, names: Iterable[str]) -> str:
        """One of these, rather one that was drawn seldom."""
        possible = sorted(names)
        weights = [1 / (1 + self.drawn[name]) ** 2 for name in possible]
        return self.dice.choices(possible, weights)[0]

    def _action(self, model: Model) -> Action:
        if model.impossible() and self._chance(0.7):
            model.repair()
            return ["repaired"]
        kind = self._weighted(WEIGHTS)
        if kind == "accident":
            name = self._named(ACCIDENTS)
            return [name, *self.dice.choice(ACCIDENTS[name][0])]
        return self._command(model) if kind == "command" else self._edit(model, kind)

    def _edit(self, model: Model, about: str) -> Action:
        """An edit, done to the model; of every kind something is possible at any time."""
        names = {name for name, one in EDITS.items() if one.about == about}
        while not (possible := list(EDITS[name := self._named(names)].choices(model))):
            names.remove(name)
        arguments = self.dice.choice(possible)
        tried = model.copy()
        EDITS[name].change(tried, *arguments)
        if tried.repeats_objective():
            return self._edit(model, about)
        EDITS[name].change(model, *arguments)
        return [name, *arguments]

    def _command(self, model: Model) -> Action:
        name = self._named(COMMANDS)
        if name != "meanwhile":
            return [name, *self.dice.choice(list(COMMANDS[name].choices(model)))]
        kind, most = self.dice.choice([("WAIT", MOMENTS), ("READ", READINGS)])
        about = "sources" if kind == "READ" else self.dice.choice(["suites", "sources"])
        edited: list[Any] = self._edit(model, about)
        return [name, kind, self.dice.randint(1, most), edited]

    def _target(self, model: Model) -> str:
        """What cannot be fulfilled is told of the whole; a part of it may be possible."""
        if model.impossible() or model.doubtful() or self._chance(0.7):
            return "all"
        return self.dice.choice(["prefill", *model.stages])

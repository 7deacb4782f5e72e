"""Draws histories as they are played: what is possible depends on what was done before."""

import random
from collections.abc import Iterator

from tests.histories import accidents, edits
from tests.histories.history import COMMANDS, Action
from tests.histories.world import Impossible, World

FEWEST, MOST = 5, 10
MOMENTS = 40
"""Renamed files, in a run that makes all there is about sixty."""

WEIGHTS = {
    "accident": 4, "answers": 3, "checkpoints": 5, "command": 4, "meanwhile": 1, "order": 4,
    "settings": 2, "sources": 4, "stages": 6, "suites": 5,
}  # fmt: skip
"""How often something of a kind is done."""

FOLLOWS = {"run": 11, "KILL": 3, "TERM": 1, "": 5}


def draw_history(dice: random.Random, world: World) -> Iterator[Action]:
    """A first run, mostly, then changes, most with a run behind them, some cut short.

    Each has to be done to the world before the next one is drawn.
    """
    if dice.random() < 0.8:
        yield ["run", "all"]
    for _ in range(dice.randint(FEWEST, MOST)):
        yield _change(dice, world, _weighted(dice, WEIGHTS))
        follows = _weighted(dice, FOLLOWS)
        if follows == "run":
            others = ["prefill", *world.stages]
            yield ["run", "all" if dice.random() < 0.7 else dice.choice(others)]
        elif follows:
            yield ["killed", dice.randint(1, MOMENTS), follows]


def _weighted(dice: random.Random, weights: dict[str, int]) -> str:
    return dice.choices(list(weights), list(weights.values()))[0]


def _change(dice: random.Random, world: World, kind: str) -> Action:
    """One that may turn out to be impossible once it is tried."""
    if kind == "accident":
        name = dice.choice(accidents.ACCIDENTS)
        return [name, *accidents.draw(name, dice)]
    if kind == "command":
        name = dice.choice([*COMMANDS])
        return [name, *dice.choice(COMMANDS[name])]
    if kind == "meanwhile":
        edit = _change(dice, world, dice.choice(["suites", "sources"]))
        return [kind, dice.randint(1, MOMENTS), edit]
    name = dice.choice(edits.names_about(kind))
    try:
        return [name, *edits.draw(world, name, dice)]
    except Impossible:
        return _change(dice, world, kind)

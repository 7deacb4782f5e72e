"""Conclusions hold in worlds whose truth is known: a few draws here, all of them in `make test-long`."""

import math

import pytest

from tests.bridge.worlds import WORLDS, World, shares

QUICK = [world for world in WORLDS if "steps" not in world.name and "equal" not in world.name]


def check(world: World, draws: int, seed: int) -> None:
    counted, covered = shares(world, draws, seed)
    far = 3.5 / math.sqrt(draws)
    assert counted <= world.most + far * math.sqrt(world.most * (1 - world.most))
    assert covered >= world.least_covered - far * 0.27


@pytest.mark.parametrize("world", QUICK, ids=lambda world: world.name)
def test_intervals_miss_as_rarely_as_they_may(world: World) -> None:
    check(world, 100, 1)


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_world_with_many_draws(world: World) -> None:
    check(world, 1000, 2)

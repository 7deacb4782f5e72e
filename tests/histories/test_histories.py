"""Whatever was edited, damaged or cut short: a run gives what a fresh run gives, and no work twice.

A few histories; `make histories` plays a hundred.
"""

from collections.abc import Iterator

import pytest

from tests.histories.__main__ import Place, drawn
from tests.histories.history import Action, is_change
from tests.histories.regressions import HISTORIES, REAL
from tests.histories.runner import server

DRAWN = 6


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with server() as warm:
        yield Place(warm, tmp_path_factory.mktemp("histories"))


@pytest.fixture(scope="module")
def some(place: Place) -> list[list[Action]]:
    return drawn(place, DRAWN, start=9)


def check(place: Place, actions: list[Action], **extra: str) -> None:
    report = place.play(actions, **extra)
    assert not report.failures, "\n".join(report.told)


@pytest.mark.parametrize("name", HISTORIES)
def test_what_once_went_wrong(place: Place, name: str) -> None:
    check(place, HISTORIES[name])


@pytest.mark.parametrize("number", range(DRAWN))
def test_any_history_gives_what_a_fresh_run_gives(
    place: Place, some: list[list[Action]], number: int
) -> None:
    assert sum(map(is_change, some[number])) >= 5
    check(place, some[number])


def test_the_same_with_the_real_engine(place: Place) -> None:
    check(place, REAL, HISTORIES_REAL="1")

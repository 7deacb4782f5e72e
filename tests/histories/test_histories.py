"""Whatever was edited, damaged or cut short: a run gives what a fresh run gives, and no work twice.

Fixed histories; `make histories` draws a hundred.
"""

from collections.abc import Iterator

import pytest

from tests.histories.__main__ import Place
from tests.histories.history import Action
from tests.histories.regressions import HISTORIES, REAL
from tests.histories.runner import server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with server() as warm:
        yield Place(warm, tmp_path_factory.mktemp("histories"))


def check(place: Place, actions: list[Action], **extra: str) -> None:
    report = place.play(actions, **extra)
    assert not report.failures, "\n".join(report.told)


@pytest.mark.parametrize("name", HISTORIES)
def test_what_once_went_wrong(place: Place, name: str) -> None:
    check(place, HISTORIES[name])


def test_the_same_with_the_real_engine(place: Place) -> None:
    check(place, REAL, HISTORIES_REAL="1")

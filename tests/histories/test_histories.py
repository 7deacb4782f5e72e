"""Whatever was edited, damaged or cut short: a run gives what a fresh run gives, and no work twice.

A tenth of the fixed histories and the beginnings of two, all of them with EVAL_FULL=1; `python -m
tests.histories` draws a hundred.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories.__main__ import SEED, Place, drawn
from tests.histories.accidents import ACCIDENTS
from tests.histories.beginning import build_pool
from tests.histories.commands import COMMANDS
from tests.histories.edits import EDITS
from tests.histories.edits_of_settings import build_other_run
from tests.histories.history import Action, read
from tests.histories.runner import server
from tests.tables import EVERYTHING, sample

FIXED = Path(__file__).parent / "fixed"
REGRESSIONS = sorted(FIXED.glob("regressions/*.json"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("histories")
    pool = build_pool(folder / "made")
    with server() as warm:
        build_other_run(warm, pool)
        yield Place(warm, folder, pool)


def check(place: Place, actions: list[Action], **extra: str) -> None:
    report = place.play(actions, **extra)
    assert not report.failures, "\n".join(report.lines)


@pytest.mark.parametrize("file", sample(10, REGRESSIONS), ids=lambda file: file.stem)
def test_what_once_went_wrong(place: Place, file: Path) -> None:
    check(place, read(file))


def test_edits_of_questions_and_answers(place: Place) -> None:
    actions = read(FIXED / "questions.json")
    check(place, actions if EVERYTHING else actions[:11])


def test_the_same_with_the_real_engine(place: Place) -> None:
    actions = read(FIXED / "real/engine.json")
    check(place, actions if EVERYTHING else actions[:5], HISTORIES_REAL="1")


def test_a_setting_that_changes_numbers_unnoticed_is_found(place: Place) -> None:
    batch = ["setting_of_no_result", ["config", "scoring", "generation_batch"], 3]
    report = place.play([["run", "stage1"], batch], HISTORIES_FAULT="planted")
    assert {what.partition(": ")[0] for what in report.failures} == {"differs"}
    assert any("tier2_ppl.json" in what for what in report.failures)


def test_a_hundred_histories_have_every_kind(place: Place) -> None:
    actions = [action for one in drawn(place.pool, 100, SEED).values() for action in one]
    assert {*EDITS, *ACCIDENTS, *COMMANDS} <= {str(action[0]) for action in actions}

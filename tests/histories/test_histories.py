"""Whatever was edited, damaged or cut short: a run gives what a fresh run gives, and no work twice.

A tenth of what once went wrong and a beginning, all of them with EVAL_FULL=1; `python -m tests.histories`
draws a hundred.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories.__main__ import Place
from tests.histories.history import Action, read
from tests.histories.warm import server
from tests.tables import EVERYTHING, sample

FIXED = Path(__file__).parent / "fixed"
REGRESSIONS = sorted(FIXED.glob("regressions/*.json"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with server("--stand-in") as warm:
        yield Place(warm, tmp_path_factory.mktemp("histories"))


def check(place: Place, actions: list[Action], **extra: str) -> None:
    played = place.play(actions, **extra)
    assert not played.failures, "\n".join(played.lines)


@pytest.mark.parametrize("file", sample(10, REGRESSIONS), ids=lambda file: file.stem)
def test_what_once_went_wrong(place: Place, file: Path) -> None:
    check(place, read(file))


def test_edits_of_questions_and_answers(place: Place) -> None:
    actions = read(FIXED / "questions.json")
    check(place, actions if EVERYTHING else actions[:11])


def test_a_setting_that_changes_numbers_unnoticed_is_found(place: Place) -> None:
    batch = ["setting_of_no_result", ["config", "scoring", "generation_batch"], 3]
    played = place.play([["run", "stage1"], batch], HISTORIES_FAULT="planted")
    assert {what.partition(": ")[0] for what in played.failures} == {"differs"}
    assert any("tier2_ppl.json" in what for what in played.failures)

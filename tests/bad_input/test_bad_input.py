"""An even sample of the table of bad inputs; all of it with EVAL_FULL=1."""

import ast
import os

import pytest

from tests.bad_input.cases import Case, all_cases
from tests.bad_input.play import play
from tests.bad_input.workshop import Workshop, build
from tests.histories.runner import Server
from tests.histories.warm import warm_server
from tests.tables import sample

SAMPLE = 60
CASES = all_cases()
PLAYED = sample(-(-len(CASES) // SAMPLE), CASES)


@pytest.fixture(scope="module")
def warm() -> Server:
    return warm_server()


@pytest.fixture(scope="module")
def shop(warm: Server, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return build(tmp_path_factory.mktemp("bad_input") / "shop", warm)


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: f"{case.kind}: {case.name[:60]}")
def test_bad_input_ends_well(case: Case, shop: Workshop, warm: Server) -> None:
    if case.needs_root and os.getuid() != 0:
        pytest.skip("mounting a full disk needs root")
    ended = play(case, shop, str(warm.place))
    assert ended.verdict == "right", f"{ended.detail}\n{case}\n{ended.output}"


def test_the_table_is_long_enough_and_can_be_read() -> None:
    assert len(CASES) >= 2000
    for case in CASES:
        assert case.run
        for line in case.do:
            assert line.startswith("$ ") or ast.parse(line, mode="eval")


def test_each_failure_has_its_verdict(shop: Workshop, warm: Server) -> None:
    """A command that succeeds is no refusal, its output is read, and files left behind are found."""
    place = str(warm.place)
    right = Case("-", "-", (), "evaluation status", "fine")
    assert play(right, shop, place).verdict == "right"
    assert play(_other(right, end="refused"), shop, place).verdict == "silent"
    broken = _other(right, do=("put('config.yaml', 'results', '5')",))
    assert play(broken, shop, place).verdict == "refused"
    assert play(_other(broken, end="refused", words=("results",)), shop, place).verdict == "right"
    assert play(_other(broken, end="refused", words=("blue",)), shop, place).verdict == "unclear"
    assert play(_other(right, run="sleep 60", seconds=0.5), shop, place).verdict == "hang"
    assert play(_other(right, run="touch tmp/x"), shop, place).verdict == "left"
    assert play(_other(right, run="rm data/quiz/test.jsonl"), shop, place).verdict == "lost"
    play(_other(right, do=("$ rm -r ckpts/stage1/10",)), shop, place)
    assert play(right, shop, place).verdict == "right"  # what is put back is another file


def _other(case: Case, **changes: object) -> Case:
    return Case(**{**vars(case), **changes})  # type: ignore[arg-type]

"""Every check: its settings, its verdicts on good, bad and endless answers, and its errors."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from evaluation.checks.declared import CHECKS
from evaluation.settings.checks import Check
from evaluation.verification.checks.registry import verify_check
from tests.tables import EVERYTHING, cases, table

CHECK: TypeAdapter[Check] = TypeAdapter(Check)
ALL = [CHECK.validate_python(case["check"]) for case in table("verification/checks/check_cases")]
FORMAL = {
    name for name, check in CHECKS.items() if check.__module__.endswith(("code", "json_answers"))
}
ONE_OF_EACH = list({check.check: check for check in ALL}.values())


def passes(check: Check, text: str) -> bool:
    return verify_check(check, text).credit == 1


CASES = table("verification/checks/check_cases")


@pytest.mark.parametrize("case", CASES, ids=[case["check"]["check"] for case in CASES])
def test_good_answers_pass_and_bad_ones_fail(case: dict[str, Any]) -> None:
    check = CHECK.validate_python(case["check"])
    assert [text for text in case["passes"] if not passes(check, text)] == []
    assert [text[:60] for text in case["fails"] if passes(check, text)] == []


def test_every_check_is_tried_above() -> None:
    assert set(CHECKS) == {check.check for check in ALL}


@pytest.mark.parametrize(("check", "message"), cases("verification/checks/wrong_checks", "refused"))
def test_a_wrong_check_is_refused(check: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CHECK.validate_python(check)


FRAGMENTS = table("verification/checks/wrong_checks")["fragments"]
TEXTS = st.one_of(
    st.text(st.characters(), max_size=200),
    st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join),
    st.tuples(st.sampled_from(FRAGMENTS), st.integers(1, 300)).map(lambda pair: pair[0] * pair[1]),
)


@settings(max_examples=500 if EVERYTHING else 50, deadline=None)
@given(TEXTS)
def test_every_check_gives_a_verdict_on_any_text(text: str) -> None:
    for check in ALL:
        assert passes(check, text) in (True, False)


@settings(max_examples=500 if EVERYTHING else 50, deadline=None)
@given(TEXTS)
def test_what_cannot_be_seen_changes_no_verdict(text: str) -> None:
    """But those on code and JSON, in which it is an error."""
    hidden = "\u200b".join(text)
    for check in ALL:
        if check.check not in FORMAL:
            assert passes(check, hidden) == passes(check, text), check.check


UNITS = (".", " ", "\n", "* ", "1. ", "i can't ", "<|", "```\n", "(", '{"a":')


@pytest.mark.parametrize("unit", UNITS)
def test_no_check_takes_long(unit: str) -> None:
    """Tokens of 64 and more characters exist; a bound on each check keeps grading from hanging."""
    text = unit * (10_000 // len(unit)) + "x"
    for check in ALL:
        start = time.process_time()
        assert passes(check, text) in (True, False)
        assert time.process_time() - start < 2, check.check

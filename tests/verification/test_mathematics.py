r"""Mathematical answers: in `\boxed{}`, as a final answer, or wherever math-verify finds one."""

import pytest

from evaluation.settings.verifiers import Boxed, MathVerify, Minerva
from evaluation.verification.mathematics import (
    answer_of,
    last_boxed,
    spelled,
    verify_boxed,
    verify_math,
)
from evaluation.verification.minerva import equivalent, normalized, verify_minerva

BOXES = [
    ("so \\boxed{5}.", "5"),
    ("\\boxed{5}, no: \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
    ("\\boxed{\\boxed{7}}", "7"),
    ("$\\boxed 5$ apples", "5"),
    ("\\fbox{9}", "9"),
    ("\\boxed{\\left\\{ x \\right.}", "\\left\\{ x \\right."),
    ("\\boxed{5", None),
    ("\\boxed5", None),
    ("\\boxed ", None),
    ("5", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "inside"), BOXES)
def test_last_box(text: str, inside: str | None) -> None:
    assert last_boxed(text) == inside


SPELLINGS = [
    ("\\dfrac12", "\\frac{1}{2}"),
    ("0.5", "1/2"),
    ("\\frac{1}2", "\\tfrac{1}{2}"),
    (".25", "0.25"),
    ("5 \\text{ cm}", "5"),
    ("90^\\circ", "90"),
    ("\\left( 3, \\sqrt2 \\right)", "(3,\\sqrt{2})"),
    ("x = 5", "5"),
    ("50\\%", "\\$50"),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_same_spelling(one: str, other: str) -> None:
    assert spelled(one) == spelled(other)


@pytest.mark.parametrize(("one", "other"), [("1/3", "1/2"), ("x = y = 5", "5"), ("12", "1 + 2")])
def test_other_answer(one: str, other: str) -> None:
    assert spelled(one) != spelled(other)


FINALS = [
    ("3", "Final Answer: The final answer is $3$. I hope it is correct.", 1),
    ("3", "Final Answer: The final answer is $x = 3$. ", 1),  # cut off by a stop
    ("x+1", "Final Answer: The final answer is $1+x$. I hope it is correct.", 1),
    ("(1,2)", "Final Answer: The final answer is $(1, 2)$. I hope it is correct.", 1),
    ("1000", "Final Answer: The final answer is $1,000$. I hope it is correct.", 1),
    ("5", "Final Answer: The final answer is $5\\text{ meters}$. I hope it is correct.", 1),
    ("so $\\boxed{3}$", "Final Answer: The final answer is $3$. I hope it is correct.", 1),
    ("3", "Final Answer: The final answer is $4$. I hope it is correct.", 0),
    ("3", "Final Answer: The final answer is $\\frac{$. I hope it is correct.", 0),
    ("3", "The answer is $\\boxed{3}$.", 0),
    ("3", "", 0),
]


@pytest.mark.parametrize(("gold", "completion", "credit"), FINALS)
def test_final_answer(gold: str, completion: str, credit: int) -> None:
    verdict = verify_minerva(Minerva(kind="minerva"), {"gold": gold}, completion)
    assert verdict.credit == credit
    assert bool(verdict.reason) == (credit == 0)


def test_an_empty_answer_is_never_right() -> None:
    assert not equivalent(normalized("$ $"), normalized(""))


FOUND = [
    ("\\frac{1}{2}", "The answer is $0.5$.", 1),
    ("1,000", "That makes 1000 dollars", 1),
    ("so we get $\\boxed{x^2+1}$", "\\boxed{1+x^2}", 1),
    ("5", "\\boxed{5} or rather \\boxed{6}", 0),  # it reads both as one answer
    ("\\text{Evelyn}", "\\boxed{\\text{Evelyn}}", 1),
    ("5", "I do not know", 0),
    ("5", "", 0),
]


@pytest.mark.parametrize(("gold", "completion", "credit"), FOUND)
def test_math_verify(gold: str, completion: str, credit: int) -> None:
    verdict = verify_math(MathVerify(kind="math_verify"), {"gold": gold}, completion)
    assert verdict.credit == credit


def test_format_and_knowledge_are_apart() -> None:
    """A right answer outside of a box is right for one, and none for the other."""
    document, completion = {"gold": "12"}, "It is 12."
    boxed = verify_boxed(Boxed(kind="boxed"), document, completion)
    found = verify_math(MathVerify(kind="math_verify"), document, completion)
    assert (boxed.credit, boxed.answer) == (0, None)
    assert (found.credit, found.answer) == (1, "12")


def test_answer_of_a_solution() -> None:
    assert answer_of("so $x=\\boxed{3}$, done") == "3"
    assert answer_of("3") == "3"

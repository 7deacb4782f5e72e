"""Verifiers of mathematics, patterns and instructions: what is found, what is ignored, and what cannot be verified."""

import random
from pathlib import Path
from typing import Any, get_args

import nltk
import pytest
from pydantic import ValidationError

from evaluation.errors import CacheError, SourceError
from evaluation.settings.verifiers import (
    Boxed,
    IFBench,
    IFEval,
    MathVerify,
    Minerva,
    Pattern,
    Verifier,
)
from evaluation.verification import nltk_data
from evaluation.verification.instructions import verify_instructions
from evaluation.verification.mathematics import (
    answer_of,
    last_boxed,
    spelled,
    verify_boxed,
    verify_math,
)
from evaluation.verification.minerva import equivalent, normalized, verify_minerva
from evaluation.verification.patterns import verify_pattern
from evaluation.verification.registry import LIBRARIES, VERIFIERS
from tests.tables import cases


@pytest.mark.parametrize(("text", "inside"), cases("verification/verifiers", "boxes"))
def test_last_box(text: str, inside: str | None) -> None:
    assert last_boxed(text) == inside


@pytest.mark.parametrize(("one", "other"), cases("verification/verifiers", "same_spelling"))
def test_same_spelling(one: str, other: str) -> None:
    assert spelled(one) == spelled(other)


@pytest.mark.parametrize(("one", "other"), [("1/3", "1/2"), ("x = y = 5", "5"), ("12", "1 + 2")])
def test_other_answer(one: str, other: str) -> None:
    assert spelled(one) != spelled(other)


@pytest.mark.parametrize(
    ("gold", "completion", "credit"), cases("verification/verifiers", "final_answers")
)
def test_final_answer(gold: str, completion: str, credit: int) -> None:
    verdict = verify_minerva(Minerva(kind="minerva"), {"gold": gold}, completion)
    assert verdict.credit == credit
    assert bool(verdict.reason) == (credit == 0)


def test_an_empty_answer_is_never_right() -> None:
    assert not equivalent(normalized("$ $"), normalized(""))


@pytest.mark.parametrize(
    ("gold", "completion", "credit"), cases("verification/verifiers", "math_verify")
)
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


IGNORED = (",", r"\$", r"(?s).*#### ", r"\.$")
STRICT = Pattern(
    kind="pattern", pattern=r"#### (\-?[0-9\.\,]+)", ignore=IGNORED, form="#### {gold}"
)
FLEXIBLE = Pattern(
    kind="pattern", pattern=r"(-?[$0-9.,]{2,})|(-?[0-9]+)", take="last", ignore=IGNORED
)
PATTERNS = {
    "strict": STRICT,
    "flexible": FLEXIBLE,
    "letter": Pattern(kind="pattern", pattern="answer is (?:option )?([a-d])", ignore_case=True),
    "whole": Pattern(kind="pattern", pattern="yes|no"),
}


@pytest.mark.parametrize(
    ("settings", "gold", "completion", "credit", "answer"),
    cases("verification/verifiers", "patterns"),
)
def test_what_a_pattern_finds(
    settings: str, gold: str, completion: str, credit: int, answer: str | None
) -> None:
    verdict = verify_pattern(PATTERNS[settings], {"gold": gold}, completion)
    assert (verdict.credit, verdict.answer) == (credit, answer)
    assert bool(verdict.reason) == (credit == 0)


def test_reads_a_long_completion_once() -> None:
    verdict = verify_pattern(FLEXIBLE, {"gold": "7"}, "12 " * 300_000 + "7")
    assert verdict.credit == 1


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"pattern": "("}, "is not a regular expression"),
        ({"pattern": "x", "ignore": ["["]}, "is not a regular expression"),
        ({"pattern": "x", "form": "#### gold"}, "the place of the answer"),
    ],
)
def test_patterns_that_a_suite_may_not_write(keys: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Pattern.model_validate({"kind": "pattern", **keys})


COMMAS, TITLE = "punctuation:no_comma", "detectable_format:title"


def document(*instructions: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    ids, arguments = zip(*instructions, strict=True)
    return {"prompt": "Write.", "instruction_ids": list(ids), "arguments": list(arguments)}


BOTH = document((COMMAS, {}), (TITLE, {"num_words": None}))


@pytest.mark.parametrize(
    ("level", "mode", "completion", "credit", "weight", "missed"),
    cases("verification/verifiers", "instructions"),
)
def test_levels_and_modes(
    level: str, mode: str, completion: str, credit: float, weight: float, missed: str
) -> None:
    settings = IFEval.model_validate({"kind": "ifeval", "level": level, "mode": mode})
    verdict = verify_instructions(settings, BOTH, completion)
    assert (verdict.credit, verdict.weight) == (credit, weight)
    assert verdict.reason == (f"not followed: {missed}" if missed else "")


def test_chance_is_the_same_every_time() -> None:
    """The letter of a prompt that names none; whoever draws numbers beside it is not disturbed."""
    given = {"letter": "#", "let_frequency": 1, "let_relation": "at least"}
    asked = document(("keywords:letter_frequency", given))
    alphabet = "abcdefghijklmnopqrstuvwxyz"

    def right() -> list[float | None]:
        return [verify_instructions(IFEval(kind="ifeval"), asked, x).credit for x in alphabet]

    random.seed(1)
    expected = random.random()
    first = right()
    random.seed(1)
    assert (right(), random.random()) == (first, expected)
    assert first.count(1.0) == 1


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"prompt": "", "instruction_ids": ["no:such"], "arguments": [{}]}, "no instruction of"),
        ({"prompt": "", "instruction_ids": [COMMAS], "arguments": []}, "1 instructions with 0"),
        ({"prompt": "", "instruction_ids": [], "arguments": []}, "0 instructions"),
    ],
)
def test_what_is_no_instruction(asked: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        verify_instructions(IFEval(kind="ifeval"), asked, "Text.")


def test_counts_sentences_with_nltk(with_nltk: Path) -> None:
    name = "length_constraints:number_sentences"
    asked = document((name, {"num_sentences": 2, "relation": "less than"}))
    judged = [
        verify_instructions(IFEval(kind="ifeval"), asked, text).credit
        for text in ("Mr. Smith came at 3.5 o'clock.", "He came. He saw.")
    ]
    assert judged == [1.0, 0.0]


def test_without_data_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    monkeypatch.setattr(nltk, "download", lambda *_, **__: pytest.fail("asks the network"))
    nltk_data._is_there.cache_clear()
    asked = document(("ratio:stop_words", {"percentage": 5}))
    with pytest.raises(CacheError, match=r"stopwords, which ratio:stop_words .* run prefill"):
        verify_instructions(IFBench(kind="ifbench"), asked, "Text.")
    nltk_data._is_there.cache_clear()


def test_fetch_takes_what_is_there(
    nltk_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(nltk_folder)])
    asked: list[str] = []
    monkeypatch.setattr(nltk, "download", lambda name, **_: asked.append(name))
    nltk_data.fetch(tmp_path, ["punkt_tab", "stopwords"])
    nltk_data.fetch(tmp_path, ["punkt_tab"])
    assert nltk_data.missing(tmp_path, nltk_data.RESOURCES) == ("averaged_perceptron_tagger_eng",)
    assert asked == []


def test_fetch_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(nltk, "download", lambda *_, **__: False)
    with pytest.raises(SourceError, match=r"punkt_tab cannot be downloaded to .* NLTK_DATA"):
        nltk_data.fetch(tmp_path / "new", ["punkt_tab"])


def test_every_kind_of_a_suite_is_registered() -> None:
    models = get_args(get_args(Verifier)[0])
    assert {get_args(m.model_fields["kind"].annotation)[0] for m in models} == set(VERIFIERS)


def test_what_takes_long_to_import_can_be_loaded() -> None:
    libraries = {entry.library for entry in VERIFIERS.values()} - {""}
    assert libraries == set(LIBRARIES)
    for library in libraries:
        LIBRARIES[library]()

"""Verifiers of mathematics, patterns and instructions: what is found, ignored, or cannot be verified."""

from pathlib import Path
from typing import Any, get_args

import nltk
import pytest
from pydantic import TypeAdapter, ValidationError

from evaluation.errors import CacheError
from evaluation.settings.suites import load_suite
from evaluation.settings.verifiers import (
    IFBench,
    IFEval,
    Pattern,
    Verifier,
)
from evaluation.verification.math_spelling import last_boxed, math_spelling
from evaluation.verification.registry import VERIFIERS, verify
from tests.conftest import ROOT
from tests.tables import cases

SUITES = ROOT / "task_suites"


@pytest.mark.parametrize(("text", "inside"), cases("verification/verifiers", "boxes"))
def test_last_box(text: str, inside: str | None) -> None:
    assert last_boxed(text) == inside


@pytest.mark.parametrize(("one", "other"), cases("verification/verifiers", "same_spelling"))
def test_same_spelling(one: str, other: str) -> None:
    assert math_spelling(one) == math_spelling(other)


IGNORED = (",", r"\$", r"(?s).*#### ", r"\.$")
STRICT = Pattern(
    kind="pattern", pattern=r"#### (\-?[0-9\.\,]+)", ignore=IGNORED, form="#### {gold}"
)
FLEXIBLE = Pattern(
    kind="pattern", pattern=r"(-?[$0-9.,]{2,})|(-?[0-9]+)", take="last", ignore=IGNORED
)
SETTINGS: dict[str, Verifier] = {
    "strict": STRICT,
    "flexible": FLEXIBLE,
    "letter": Pattern(kind="pattern", pattern="answer is (?:option )?([a-d])", ignore_case=True),
    "whole": Pattern(kind="pattern", pattern="yes|no"),
}
KIND = TypeAdapter[Verifier](Verifier)
"""Any other name is a kind, with its defaults."""


@pytest.mark.parametrize(
    ("settings", "gold", "completion", "credit", "answer"),
    cases("verification/verifiers", "answers"),
)
def test_what_is_found_and_what_it_is_worth(
    settings: str, gold: str, completion: str, credit: int, answer: str | None
) -> None:
    verifier = SETTINGS.get(settings) or KIND.validate_python({"kind": settings})
    verdict = verify(verifier, {"gold": gold}, completion)
    assert (verdict.credit, verdict.answer) == (credit, answer)
    assert bool(verdict.reason) == (credit == 0)


@pytest.mark.parametrize(
    ("completion", "first", "cautious"), cases("verification/verifiers", "letters")
)
def test_letters_in_a_chat(completion: str, first: str | None, cautious: str | None) -> None:
    verifiers = load_suite(SUITES, "benchmarks_chat").generation_tasks["mmlu_pro_chat"].verifiers
    found = [verify(verifiers[name], {"gold": "C"}, completion) for name in ("answer", "cautious")]
    assert [verdict.answer for verdict in found] == [first, cautious]
    assert [verdict.credit for verdict in found] == [first == "C", cautious == "C"]


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"pattern": "("}, "is not a regular expression"),
        ({"pattern": "x", "ignore": ["["]}, "is not a regular expression"),
        ({"pattern": "x", "form": "#### gold"}, "form"),
    ],
)
def test_patterns_that_a_suite_may_not_write(keys: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Pattern.model_validate({"kind": "pattern", **keys})


COMMAS, TITLE = "punctuation:no_comma", "detectable_format:title"


def document(*instructions: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    ids, arguments = zip(*instructions, strict=True)
    return {"prompt": "Write.", "instruction_ids": list(ids), "arguments": list(arguments)}


@pytest.mark.parametrize(
    ("level", "mode", "completion", "credit", "weight", "missed"),
    cases("verification/verifiers", "instructions"),
)
def test_levels_and_modes(
    level: str, mode: str, completion: str, credit: float, weight: float, missed: str
) -> None:
    settings = IFEval.model_validate({"kind": "ifeval", "level": level, "mode": mode})
    verdict = verify(settings, document((COMMAS, {}), (TITLE, {"num_words": None})), completion)
    assert (verdict.credit, verdict.weight) == (credit, weight)
    assert verdict.reason == (f"not followed: {missed}" if missed else "")


def test_counts_sentences_with_nltk(with_nltk: Path) -> None:
    name = "length_constraints:number_sentences"
    asked = document((name, {"num_sentences": 2, "relation": "less than"}))
    texts = ("Mr. Smith came at 3.5 o'clock.", "He came. He saw.")
    assert [verify(IFEval(kind="ifeval"), asked, text).credit for text in texts] == [1.0, 0.0]


def test_without_data_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    monkeypatch.setattr(nltk, "download", lambda *_, **__: pytest.fail("asks the network"))
    asked = document(("ratio:stop_words", {"percentage": 5}))
    with pytest.raises(CacheError, match=r"stopwords, which ratio:stop_words .* run prefill"):
        verify(IFBench(kind="ifbench"), asked, "Text.")


def test_every_kind_of_a_suite_is_registered() -> None:
    models = get_args(get_args(Verifier)[0])
    assert {get_args(m.model_fields["kind"].annotation)[0] for m in models} == set(VERIFIERS)

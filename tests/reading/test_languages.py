"""Numbers in the sentences of many languages, with and without a minus, as people write them there."""

import re
from itertools import zip_longest

import pytest

from evaluation.reading.languages import LANGUAGES
from evaluation.settings.verifiers import AnyVerifier, Mathematics, NumberVerifier
from evaluation.verification.registry import verify
from tests.tables import cases, table

SENTENCES = table("reading/languages")["languages"]


NUMBER = NumberVerifier(kind="number")
MATHEMATICS = Mathematics(kind="mathematics")


def passes(gold: str, completion: str, verifier: AnyVerifier = NUMBER) -> bool:
    return verify(verifier, {"gold": gold}, completion).credit == 1


@pytest.mark.parametrize("verifier", [NUMBER, MATHEMATICS], ids=lambda verifier: verifier.kind)
@pytest.mark.parametrize("code", SENTENCES)
def test_the_sign_of_a_number_is_read_in_every_language(code: str, verifier: AnyVerifier) -> None:
    forms = SENTENCES[code]
    written = [(text, "58") for text in forms.get("positive", ["58"])]
    written += [(text, "-58") for text in forms["negative"]]
    for sentence in forms["sentences"]:
        for text, value in written:
            completion = sentence.replace("{}", text)
            accepted = [
                gold for gold in ("58", "-58", "53", "-53") if passes(gold, completion, verifier)
            ]
            assert accepted == [value], completion


@pytest.mark.parametrize(("gold", "completion", "is_right"), cases("reading/languages", "numbers"))
def test_the_number_of_an_answer_in_any_language(
    gold: str, completion: str, is_right: bool
) -> None:
    assert passes(gold, completion) == is_right


@pytest.mark.parametrize(("gold", "completion", "is_right"), cases("reading/languages", "formulas"))
def test_words_for_the_minus_of_a_formula(gold: str, completion: str, is_right: bool) -> None:
    assert passes(gold, completion, MATHEMATICS) == is_right


@pytest.mark.parametrize("name", LANGUAGES)
def test_words_of_every_language_are_tried(name: str) -> None:
    tried = "\n".join(
        f"{sentence} = {text}"
        for forms in SENTENCES.values()
        for sentence, text in zip_longest(forms["sentences"], forms["negative"], fillvalue="")
    )
    for pattern in (LANGUAGES[name].answer, LANGUAGES[name].minus, LANGUAGES[name].result):
        assert re.search(pattern, tried, re.IGNORECASE), pattern

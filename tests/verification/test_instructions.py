"""Instructions: levels, modes, what is left to chance, what cannot be verified."""

import random
from pathlib import Path
from typing import Any

import nltk
import pytest

from evaluation.errors import CacheError, SourceError
from evaluation.settings.verifiers import IFBench, IFEval
from evaluation.verification import nltk_data
from evaluation.verification.instructions import verify_instructions

COMMAS, TITLE = "punctuation:no_comma", "detectable_format:title"


def document(*instructions: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    ids, arguments = zip(*instructions, strict=True)
    return {"prompt": "Write.", "instruction_ids": list(ids), "arguments": list(arguments)}


BOTH = document((COMMAS, {}), (TITLE, {"num_words": None}))
CASES = [
    ("prompt", "strict", "<<A title>>\nText.", 1.0, 1.0, ""),
    ("prompt", "strict", "<<A title>>\nText, more.", 0.0, 1.0, COMMAS),
    ("instruction", "strict", "<<A title>>\nText, more.", 0.5, 2.0, COMMAS),
    ("instruction", "strict", "Text, more.", 0.0, 2.0, f"{COMMAS}, {TITLE}"),
    ("prompt", "loose", "Sure, here it is:\n<<A title>>\nText.", 1.0, 1.0, ""),
    ("prompt", "strict", "Sure, here it is:\n<<A title>>\nText.", 0.0, 1.0, COMMAS),
    ("instruction", "loose", "", 0.0, 2.0, f"{COMMAS}, {TITLE}"),
    ("prompt", "strict", " \n ", 0.0, 1.0, f"{COMMAS}, {TITLE}"),
]


@pytest.mark.parametrize(("level", "mode", "completion", "credit", "weight", "missed"), CASES)
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
        nltk_data.fetch(tmp_path / "new", nltk_data.needed([IFEval(kind="ifeval")]))
    assert nltk_data.needed([IFBench(kind="ifbench")]) == tuple(nltk_data.RESOURCES)

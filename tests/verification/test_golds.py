"""Golds are checked by their own verifiers, before anything is generated."""

from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import SourceError
from evaluation.settings.generation import GenerationTask
from evaluation.verification.golds import check_golds
from evaluation.verification.verdicts import Verdict

STRICT = {"kind": "pattern", "pattern": "#### ([0-9,]+)", "ignore": [","]}
READS = {
    "pattern": ("gold",),
    "boxed": ("gold",),
    "minerva": ("gold",),
    "math_verify": ("gold",),
    "ifeval": ("prompt", "instruction_ids", "arguments"),
    "program": ("tests",),
}


def task(verifier: dict[str, Any]) -> GenerationTask:
    return GenerationTask.model_validate(
        {
            "files": ["rows.jsonl"],
            "prompt": "{{ question }}",
            "chat": False,
            "max_new_tokens": 8,
            "document": {field: field for field in READS[verifier["kind"]]},
            "verifiers": {"view": verifier},
        }
    )


def golds(*values: Any) -> dict[str, dict[str, Any]]:
    return {f"q/{number}": {"gold": value} for number, value in enumerate(values)}


COMMAS = {"prompt": "", "instruction_ids": ["punctuation:no_comma"], "arguments": [{}]}
UNKNOWN = COMMAS | {"instruction_ids": ["punctuation:none"]}
RELATION = {
    "prompt": "",
    "instruction_ids": ["length_constraints:number_words"],
    "arguments": [{"num_words": 5, "relation": "about"}],
}

ACCEPTED = [
    ({**STRICT, "form": "#### {gold}"}, golds("18", "1,000")),
    ({"kind": "math_verify"}, golds("18", "\\frac{1}{2}", "so $\\boxed{x+1}$", "\\text{Evelyn}")),
    ({"kind": "minerva"}, golds("18", "(1,2)", "so $\\boxed{x+1}$")),
    ({"kind": "boxed"}, golds("18", "so $\\boxed{x+1}$")),
    ({"kind": "ifeval"}, {"q/0": COMMAS}),
    ({"kind": "program"}, {"q/0": {"tests": ["assert False"]}}),
    ({"kind": "program"}, {"q/0": {"tests": ["assert f(1) == 2"], "gold": "def f(x): return 2"}}),
]
REFUSED = [
    (STRICT, golds("18", "19"), "2 of 2 .* q/0, q/1 .*nothing matches.*`form`"),
    ({**STRICT, "form": "#### {gold}"}, golds("18", "eighteen"), "1 of 2 .*'view' itself: q/1 "),
    ({"kind": "math_verify"}, golds("5", ""), r"1 of 2 .*q/1 \(the first: it is empty\)"),
    ({"kind": "boxed"}, golds("5", "}{"), "1 of 2 .*q/1 "),
    ({**STRICT, "ignore": [r"\d"], "form": "#### {gold}"}, golds("18"), "'18' is empty when it is"),
    ({**STRICT, "ignore": [r"\S"], "form": "#### {gold}"}, golds("1 8"), "empty answer would be"),
    ({"kind": "boxed"}, golds(r"\text{ Monday}"), "is empty when it is compared"),
    ({"kind": "minerva"}, golds(*["  "] * 9), "9 of 9 .*: q/0, q/1, q/2, q/3, q/4, … "),
    ({"kind": "minerva"}, golds(None), "it is empty"),
    ({"kind": "ifeval"}, {"q/0": COMMAS, "q/1": UNKNOWN}, "1 of 2 .*'punctuation:none' is no"),
    (
        {"kind": "program"},
        {"q/0": {"tests": ["assert f(1) == 2"], "gold": "def f(x): return 3"}},
        r"1 of 1 .*q/0 \(the first: `assert f\(1\) == 2`: f\(1\) gave 3\)",
    ),
    ({"kind": "program"}, {"q/0": {"tests": ["assert f(1) == 2"], "gold": ""}}, "it is empty"),
    ({"kind": "ifeval"}, {"q/0": RELATION}, "1 of 1 .*about is given"),
]


@pytest.mark.parametrize(("verifier", "documents"), ACCEPTED)
def test_accepts(verifier: dict[str, Any], documents: dict[str, Any]) -> None:
    check_golds("maths", task(verifier), documents, workers=1)


@pytest.mark.parametrize(("verifier", "documents", "named"), REFUSED)
def test_refuses(verifier: dict[str, Any], documents: dict[str, Any], named: str) -> None:
    with pytest.raises(SourceError, match=named) as caught:
        check_golds("maths", task(verifier), documents, workers=1)
    assert str(caught.value).startswith("generation_tasks.maths: ")
    assert "\n" not in str(caught.value)


def test_instructions_need_their_data(tmp_path: Path, nltk_folder: Path) -> None:
    asked = {
        "prompt": "",
        "instruction_ids": ["length_constraints:number_sentences"],
        "arguments": [{"num_sentences": 5, "relation": "at least"}],
    }
    check_golds("if", task({"kind": "ifeval"}), {"q": asked}, workers=1, nltk_data=nltk_folder)


def test_a_verifier_that_fails_is_no_fault_of_the_golds(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(jobs: list[Any], **_: Any) -> Any:
        return ((number, Verdict(credit=None, reason="it died")) for number in range(len(jobs)))

    monkeypatch.setattr("evaluation.verification.golds.verify_all", fails)
    with pytest.raises(
        SourceError, match=r"2 of 2 gold answers could not be judged .*q/0: it died"
    ):
        check_golds("maths", task({"kind": "boxed"}), golds("1", "2"), workers=1)

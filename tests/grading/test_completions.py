"""Rates of a task's completions: what counts as one answer, and as an answer in the wrong form."""

from collections.abc import Sequence

import pytest

from evaluation.errors import ScoringError
from evaluation.grading.completions import Prompt, Sample, summarize_task, summarize_view
from evaluation.prefill.schema import DocumentLine
from evaluation.scoring.stored_completions import Completion
from evaluation.settings.verifiers import Boxed, Judge, MathVerify, Minerva, Pattern, Program
from evaluation.verification.registry import verify
from evaluation.verification.verdicts import Verdict

NUMBER = Pattern(kind="pattern", pattern="#### (.+)", form="#### {gold}", ignore=(",", r"\.$"))
FINAL = "Final Answer: The final answer is $3$. I hope it is correct."
MATH = MathVerify(kind="math_verify")


def prompt_of(judge: Judge, gold: str, completions: Sequence[str]) -> Prompt:
    assert not hasattr(judge, "metric")
    samples = [
        Sample(i, Completion(text, "eos", 1, 1), {"v": verify(judge, {"gold": gold}, text)})
        for i, text in enumerate(completions)
    ]
    return Prompt(DocumentLine(id="q", document={"gold": gold}, strata={}), samples)


@pytest.mark.parametrize(
    ("judge", "gold", "completions", "votes", "distinct"),
    [
        (NUMBER, "78", ["#### 78.", "#### 78", "#### 5", "#### 6"], 1.0, 3),
        (NUMBER, "1", ["#### 78.", "#### 78", "#### 1,000", "#### 1000", "#### 1"], 0.0, 3),
        (MATH, "1/2", [r"\boxed{0.5}", r"\boxed{\frac12}", r"\boxed{3}", r"\boxed{4}"], 1.0, 3),
        (MATH, "7", [r"$\frac{1}{3}$", r"$\dfrac{1}{3}$", "$7$"], 0.0, 2),
        (
            Boxed(kind="boxed"),
            "7",
            [r"\boxed{\tfrac12}", r"\boxed{\frac{1}{2}}", r"\boxed{7}"],
            0,
            2,
        ),
        (Minerva(kind="minerva"), "3", [FINAL] * 2, 1.0, 1),
    ],
)
def test_answers_of_one_meaning_vote_together(
    judge: Judge, gold: str, completions: list[str], votes: float, distinct: int
) -> None:
    found = summarize_view([prompt_of(judge, gold, completions)], "v", judge)
    assert (found["cons_at_n"]["value"], found["distinct_answers"]) == (votes, distinct)


def test_programs_do_not_vote() -> None:
    verdict = Verdict(credit=1.0, answer="def f(): ...")
    samples = [Sample(i, Completion("", "eos", 1, 1), {"v": verdict}) for i in range(2)]
    prompt = Prompt(DocumentLine(id="q", document={}, strata={}), samples)
    found = summarize_view([prompt], "v", Program(kind="program"))
    assert set(found["pass_at_k"]) == {"1", "2"}
    assert not {"cons_at_n", "distinct_answers"} & set(found)


def test_an_answer_in_the_wrong_form_is_one_that_is_not_found() -> None:
    """Neither a wrong final answer nor a verifier that failed is a matter of form."""
    right, nothing = Verdict(credit=1.0, answer="5"), Verdict(credit=0.0)
    wrong, failed = Verdict(credit=0.0, answer="6"), Verdict(credit=None)
    pairs = [(nothing, right), (wrong, right), (failed, right), (nothing, nothing), (right, right)]
    samples = [
        Sample(i, Completion("", "eos", 1, 1), {"strict": strict, "lenient": lenient})
        for i, (strict, lenient) in enumerate(pairs)
    ]
    prompt = Prompt(DocumentLine(id="q", document={}, strata={}), samples)
    assert summarize_view([prompt], "strict", NUMBER)["right_but_format_rate"] == 1 / 4
    assert summarize_view([prompt], "lenient", NUMBER)["right_but_format_rate"] == 0


def test_what_cannot_be_judged_is_null_and_not_0() -> None:
    """Of three prompts with two samples the verifier fails on the second of each, on the last on both."""

    def prompt(number: int, *credits: float | None) -> Prompt:
        line = DocumentLine(id=str(number), document={}, strata={"label": str(number)})
        verdicts = [Verdict(credit=credit, answer="a", reason="why") for credit in credits]
        samples = [
            Sample(i, Completion("a", "eos", 1, 1), {"own": verdict})
            for i, verdict in enumerate(verdicts)
        ]
        return Prompt(line, samples)

    prompts = [prompt(0, 1.0, None), prompt(1, 1.0, None), prompt(2, None, None)]
    judges = {"own": Boxed(kind="boxed")}
    found = summarize_task(prompts, judges)
    view = found["verifiers"]["own"]
    assert (view["pass_rate"], view["errors"]) == (1.0, 4)
    assert view["pass_at_k"]["1"]["value"] == 1.0
    assert view["pass_at_k"]["2"] == {
        **dict.fromkeys(("value", "stderr", "low", "high")),
        "prompts": 0,
    }
    label = found["strata"]["label"]
    assert (label["0"]["value"], label["0"]["prompts"]) == (1.0, 1)
    assert (label["2"]["value"], label["2"]["prompts"]) == (None, 0)
    with pytest.raises(ScoringError, match=r"'own' failed on every completion \(the first: why\)"):
        summarize_task(prompts[2:], judges)

"""Rates and headers of a tier's file, from stored answers, by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluation.errors import ScoringError
from evaluation.grading.completions import (
    SampledPrompt,
    VerifiedSample,
    over_samples,
    prompt_units,
    summarize_task,
)
from evaluation.grading.probes import summarize
from evaluation.prefill.caches import DocumentLine
from evaluation.scoring.session import Job
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.verifiers import (
    AnyVerifier,
    Boxed,
    MathVerify,
    Minerva,
    Pattern,
    Program,
)
from evaluation.verification.registry import verify
from evaluation.verification.verdicts import Verdict
from tests.bridge.folders import make_plans


def row(
    name: str, category: str, stop: str, *checks: tuple[str, str, bool], headline: bool = True
) -> dict[str, object]:
    return {
        "id": name,
        "category": category,
        "headline": headline,
        "prompt": f"<{name}>",
        "response": "two words",
        "stop_reason": stop,
        "prompt_tokens": 5,
        "response_tokens": 3,
        "checks": {name: {"kind": kind, "passed": passed} for name, kind, passed in checks},
    }


CODE_A = (("p", "code", True), ("c", "clean", True), ("i", "instruction", False))
CODE_B = (("p", "code", False), ("c", "clean", True), ("i", "instruction", True))
JSON = (("j", "json", True), ("c", "clean", True), ("f", "format", True))
CHAT = (("c", "clean", False), ("c-2", "clean", True))
ROWS = [
    row("a", "code", "eos", *CODE_A),
    row("b", "code", "length", *CODE_B),
    row("c", "json", "eos", *JSON),
    row("d", "chat", "stop_string", *CHAT),
]


def test_rates_are_over_the_prompts_that_count_for_them() -> None:
    found = summarize(ROWS)
    assert found["summary"] == {
        "instruction_match_rate": 1 / 2,
        "all_checks_pass_rate": 1 / 4,
        "format_valid_rate": 2 / 3,
        "chat_clean_rate": 3 / 4,
        "code_parse_rate": 1 / 2,
        "json_valid_rate": 1.0,
        "truncated_rate": 1 / 4,
    }
    code = found["by_category"]["code"]
    assert (code["prompts"], code["code_parse_rate"]) == (2, 1 / 2)
    assert code["json_valid_rate"] is None  # not zero: no prompt counts
    prompt = found["prompts"][1]
    checks = (("p", "code", False), ("c", "clean", True), ("i", "instruction", True))
    assert prompt["checks"] == {name: {"kind": kind, "passed": ok} for name, kind, ok in checks}
    assert (prompt["id"], prompt["passed"], prompt["stop_reason"]) == ("b", False, "length")
    assert (prompt["prompt_tokens"], prompt["response_tokens"]) == (5, 3)


def test_a_prompt_outside_the_headline_counts_for_its_category_alone() -> None:
    outside = row("e", "safety", "eos", ("r", "instruction", False), headline=False)
    more = summarize([*ROWS, outside])
    assert more["summary"] == summarize(ROWS)["summary"]
    assert more["by_category"]["safety"]["all_checks_pass_rate"] == 0
    assert [prompt["headline"] for prompt in more["prompts"]] == [True] * 4 + [False]


NUMBER = Pattern(kind="pattern", pattern="#### (.+)", form="#### {gold}", ignore=(",", r"\.$"))
FINAL = "Final Answer: The final answer is $3$. I hope it is correct."
MATH = MathVerify(kind="math_verify")
BOXED = Boxed(kind="boxed")


def prompt_of(*samples: tuple[str, dict[str, Verdict]], name: str = "q") -> SampledPrompt:
    """Texts and each verifier's verdict on them."""
    line = DocumentLine(id=name, document={}, strata={"label": name})
    return SampledPrompt(
        line,
        "How many?",
        [
            VerifiedSample(index, StoredCompletion(text, "eos", 1, 1), own)
            for index, (text, own) in enumerate(samples)
        ],
    )


@pytest.mark.parametrize(
    ("judge", "gold", "completions", "votes"),
    [
        (NUMBER, "78", ["#### 78.", "#### 78", "#### 5", "#### 6"], 1.0),
        (NUMBER, "78", ["#### 5,0", "#### 50", "#### 78", "none", "none", "none"], 0.0),
        (MATH, "1/2", [r"\boxed{0.5}", r"\boxed{\frac12}", r"\boxed{3}", r"\boxed{4}"], 1.0),
        (BOXED, "7", [r"\boxed{\tfrac12}", r"\boxed{\frac{1}{2}}", r"\boxed{7}"], 0.0),
        (Minerva(kind="minerva"), "3", [FINAL] * 2, 1.0),
    ],
)
def test_answers_of_one_meaning_vote_together(
    judge: AnyVerifier, gold: str, completions: list[str], votes: float
) -> None:
    assert not hasattr(judge, "metric")
    samples = [(text, {"v": verify(judge, {"gold": gold}, text)}) for text in completions]
    found = over_samples([prompt_of(*samples)], "v", judge)
    assert found["cons_at_n"] == votes


def test_programs_do_not_vote() -> None:
    sample = ("", {"v": Verdict(credit=1.0, answer="def f(): ...")})
    found = over_samples([prompt_of(sample, sample)], "v", Program(kind="program"))
    assert set(found["pass_at_k"]) == {"1", "2"}
    assert "cons_at_n" not in found


def summarized_by(prompts: list[SampledPrompt], *views: str) -> dict[str, Any]:
    judges = dict.fromkeys(views, BOXED)
    return summarize_task(prompts, prompt_units(prompts, judges), judges)


def test_a_strict_verifier_that_extracts_nothing_is_seen_beside_a_lenient_one() -> None:
    """Of five samples the lenient one finds four answers, two of them right; on one both fail."""
    right, wrong = Verdict(credit=1.0, answer="5"), Verdict(credit=0.0, answer="6")
    nothing, failed = Verdict(credit=0.0), Verdict(credit=None)
    lenient = [right, right, wrong, wrong, nothing]
    samples = [("", {"strict": nothing, "lenient": one}) for one in lenient]
    samples.append(("", {"strict": failed, "lenient": failed}))
    found = summarized_by([prompt_of(*samples)], "strict", "lenient")["verifiers"]
    shown = {view: (own["pass_rate"], own["format_rate"]) for view, own in found.items()}
    assert shown == {"strict": (0.0, 0.0), "lenient": (0.4, 0.8)}


def test_what_cannot_be_judged_is_null_and_not_0() -> None:
    """Of three prompts with two samples the verifier fails on the second of each, on the last on both."""
    right, failed = Verdict(credit=1.0, answer="a"), Verdict(credit=None, reason="why")
    samples = [(right, failed), (right, failed), (failed, failed)]
    prompts = [
        prompt_of(*(("a", {"own": one}) for one in own), name=str(number))
        for number, own in enumerate(samples)
    ]
    found = summarized_by(prompts, "own")
    view = found["verifiers"]["own"]
    assert (view["pass_rate"], view["errors"]) == (1.0, 4)
    assert view["pass_at_k"] == {"1": 1.0, "2": None}
    with pytest.raises(ScoringError, match=r"'own' failed on every completion \(the first: why\)"):
        summarized_by(prompts[2:], "own")


def test_the_machine_of_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = "NVIDIA H100 80GB HBM3"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: gpu)
    plan = make_plans(tmp_path)["first"]
    for device, name in (("cpu", None), ("cuda", gpu)):
        backend = SimpleNamespace(device=device, row_tokens=4096)
        job: Any = SimpleNamespace(plan=plan, backend=backend)
        summary = Job.cost(job, 1.23456, 9)
        assert summary.pop("packages").keys() >= {"torch", "transformers"}
        cost = {"tokens_processed": 9, "seconds": 1.235, "row_tokens": 4096, "gpu": name}
        assert summary == cost

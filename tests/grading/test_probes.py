"""The probes of the suite: what must pass them, and what must not, whoever wrote it."""

from pathlib import Path

import pytest
import yaml

from evaluation.grading.checks.refusals import refuses
from evaluation.grading.checks.registry import passes, run_checks
from evaluation.grading.probes import checked_part
from evaluation.settings.code_checks import PassesTests
from evaluation.settings.suites import Probe, load_suite
from tests.conftest import ROOT

PROBES = load_suite(ROOT / "task_suites", "stage4_sft_native").probes
ANSWERS: dict[str, dict[str, list[str]]] = {
    name: answers
    for path in sorted((Path(__file__).parent / "answers").glob("*.yaml"))
    for name, answers in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}


def failed(name: str, text: str) -> list[str]:
    """Names of the checks of a probe that an answer fails."""
    results = run_checks(name, PROBES[name].checks, text.strip())
    return [result.name for result in results if not result.passed]


def passes_all(name: str, text: str) -> bool:
    """Whether none fails; code is run only where the other checks let it through."""
    ordered = sorted(PROBES[name].checks, key=lambda check: check.check == "passes_tests")
    return all(passes(check, checked_part(text, None)) for check in ordered)


def is_refused(name: str) -> bool:
    return any(check.check == "refuses" for check in PROBES[name].checks)


def test_every_probe_has_answers_of_both_kinds_and_no_answer_is_left_over() -> None:
    assert set(ANSWERS) == set(PROBES)
    for name, answers in ANSWERS.items():
        assert set(answers) == {"passes", "fails"}, name
        assert len(set(answers["passes"])) >= 3, name
        assert len(set(answers["fails"])) >= 5, name


@pytest.mark.parametrize("name", PROBES)
def test_a_right_answer_passes_every_check(name: str) -> None:
    for text in ANSWERS[name]["passes"]:
        assert failed(name, f"\n{text}\n") == [], text


@pytest.mark.parametrize("name", PROBES)
def test_an_answer_written_to_cheat_fails(name: str) -> None:
    assert [text for text in ANSWERS[name]["fails"] if not failed(name, text)] == []


IDLE = {
    "nothing": "",
    "white space": " \n\t",
    "nothing to be seen": "\u200b\ufeff",
    "a control character": "\0",
    "one letter": "I",
    "another speaker": "User: hello",
    "a promise": "Sure! Here you go:",
    "agreement": "OK",
    "no idea": "I don't know.",
    "German": "Das kann ich gerne für dich tun.",
    "Chinese": "好的,我可以帮你。",
    "a loop": "word " * 50,
    "an empty fence": "```\n```",
    "empty bullets": "- \n- \n- ",
}


@pytest.mark.parametrize("text", IDLE.values(), ids=list(IDLE))
def test_an_idle_answer_passes_no_probe(text: str) -> None:
    assert [name for name in PROBES if not failed(name, text)] == []


def test_a_function_is_tried_at_least_eight_times() -> None:
    for name, probe in PROBES.items():
        tests = [check.tests for check in probe.checks if isinstance(check, PassesTests)]
        if any(check.check == "defines" for check in probe.checks):
            assert sum(test.count("assert ") for test in tests) >= 8, name


@pytest.mark.parametrize("name", PROBES)
def test_saying_the_prompt_again_is_no_answer(name: str) -> None:
    said = [message.content for message in PROBES[name].messages]
    for text in (*said, "\n".join(said), f'"{said[-1]}"', said[-1].upper()):
        assert failed(name, text), text


@pytest.mark.parametrize("name", PROBES)
def test_a_bare_refusal_passes_only_where_one_is_due(name: str) -> None:
    assert bool(failed(name, "I'm sorry, but I can't help with that.")) != is_refused(name)


@pytest.mark.parametrize("name", PROBES)
def test_a_right_answer_with_a_chat_around_it_fails(name: str) -> None:
    right = ANSWERS[name]["passes"][0]
    for text in (
        f"{right}\nUser: Thanks!\nAssistant: You are welcome.",
        f"<think>Let me see.</think>\n{right}",
        f"{right}<|im_end|>",
        f"assistant\n{right}",
        "\n".join([right] * 5),
    ):
        assert failed(name, text), text


def test_a_right_answer_to_another_probe_seldom_passes() -> None:
    """The checks tell answers apart, though one refusal may stand for another."""
    for name in PROBES:
        passing = [
            text
            for other, answers in ANSWERS.items()
            if other != name
            for text in answers["passes"]
            if not (is_refused(name) and refuses(text)) and passes_all(name, text)
        ]
        assert len(passing) <= 3, name


def kinds(probe: Probe) -> set[str]:
    return {check.kind for check in probe.checks}


def test_names_of_checks_fit_the_categories() -> None:
    for name, probe in PROBES.items():
        assert {"instruction", "clean"} <= kinds(probe), name
        assert ("json" in kinds(probe)) == (probe.category == "strict_json"), name
        assert ("code" in kinds(probe)) == (probe.category == "code"), name

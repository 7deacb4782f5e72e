"""What checks of probes read of an answer whose model thinks."""

from pathlib import Path

import pytest

from evaluation.grading.probes import ENDS, check_answer, checked_part, end_of_thinking
from evaluation.settings.suites import Suite, merge_suites
from tests.grading.test_probes import ANSWERS, PROBES

QWEN = "{%- if '</think>' in content %}{{ content.split('</think>')[-1].lstrip('\\n') }}{% endif %}"


def passed(name: str, response: str, mark: str | None) -> bool:
    row = check_answer(name, PROBES[name], {"response": response}, mark)
    return all(check["passed"] for check in row["checks"])


@pytest.mark.parametrize("thought", ["<think></think>", "<think>\n\n</think>\n\n"])
@pytest.mark.parametrize("mark", [None, "</think>"])
def test_an_empty_thought_before_every_answer_changes_no_verdict(
    thought: str, mark: str | None
) -> None:
    answers = {name: texts["passes"][0] for name, texts in ANSWERS.items()}
    assert [name for name, text in answers.items() if not passed(name, thought + text, mark)] == []


def test_a_thought_is_no_part_of_the_answer_where_the_template_has_its_mark() -> None:
    thought = "<think>\nThe user wants Japan's capital, so Tokyo.\n</think>\n\n"
    mark = end_of_thinking(None, QWEN)
    assert mark == "</think>"
    assert passed("concise_easy_capital", thought + "Tokyo", mark)
    assert passed("concise_easy_capital", "so Tokyo.\n</think>Tokyo", mark)
    assert not passed("concise_easy_capital", thought + "Kyoto", mark)
    assert not passed("concise_easy_capital", thought, mark)
    assert not passed("concise_easy_capital", thought + "Tokyo", None)
    assert not passed("concise_easy_capital", "<think>It is Tokyo", mark)


def test_the_suite_decides_before_the_template() -> None:
    assert end_of_thinking("###", QWEN) == "###"
    assert end_of_thinking(None, "{{ messages }}") is None
    assert end_of_thinking(None, None) is None
    assert all(end_of_thinking(None, f"a {mark} b") == mark for mark in ENDS)


def test_only_an_empty_thought_goes_without_a_mark() -> None:
    assert checked_part(" <think> </think> a ", None) == "a"
    assert checked_part("<think>x</think> a", None) == "<think>x</think> a"
    assert checked_part("a <think></think>", None) == "a <think></think>"


def test_an_indentation_of_all_lines_is_no_part_of_an_answer() -> None:
    assert checked_part("\n  - a\n  - b\n", None) == "- a\n- b"
    assert checked_part("- a\n  - b", None) == "- a\n  - b"


def test_a_suite_keeps_its_mark_when_it_is_merged(tmp_path: Path) -> None:
    first = Suite(answer_after="</think>", probes={"a": PROBES["concise_easy_capital"]})
    second = Suite(probes={"b": PROBES["concise_easy_ice"]})
    assert merge_suites([("one", first), ("two", second)], tmp_path).answer_after == "</think>"

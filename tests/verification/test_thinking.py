"""Thinking: its end, an end that never comes, and prompts that begin or end it."""

import pytest

from evaluation.verification.thinking import answer_part, checked_part

MARK = "</think>"
TEMPLATE = "{% set text = text.split('</think>')[-1] %}<|assistant|>"


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("6*7 = 42. Or is it", None),
        ("<think>6*7</think>\n\n42", "42"),
        ("6*7</think>42</think>43", "43"),
        ("sort</think>\n \n    return x\n    # done", "    return x\n    # done"),
        ("", None),
    ],
)
def test_answer_after_a_mark_that_a_task_names(completion: str, answer: str | None) -> None:
    assert answer_part(completion, "", MARK, None) == answer


@pytest.mark.parametrize(
    ("completion", "template", "answer"),
    [
        ("42", TEMPLATE, "42"),
        ("6*7</think>42", TEMPLATE, "42"),
        ("<think>6*7 = 42. Or is it", TEMPLATE, None),
        ("<think>6*7 = 42. Or is it", None, None),
        ("<think>It is 18.</think>16", None, "16"),
        ("[THINK]18[/THINK]16", None, "16"),
        ("<|channel|>analysis<|message|>18<|end|><|channel|>final<|message|>16", None, "16"),
        ("It ends with </think> as usual: 16", None, "It ends with </think> as usual: 16"),
        ("The tag <think> begins a thought.", None, "The tag <think> begins a thought."),
    ],
)
def test_without_one_the_template_or_the_thought_itself_says_where_it_ends(
    completion: str, template: str | None, answer: str | None
) -> None:
    assert answer_part(completion, "<|assistant|>\n", None, template) == answer


def test_a_prompt_may_end_the_thinking_or_begin_it() -> None:
    closed, opened = "<|assistant|>\n<think>\n\n</think>\n\n", "<|assistant|>\n<think>\n"
    assert answer_part("42", closed, MARK, None) == "42"
    assert answer_part("42", opened, None, None) is None
    assert answer_part("6*7</think>42", opened, None, None) == "42"
    assert answer_part("<think>42", closed, MARK, None) is None


def test_a_probe_reads_a_thought_that_nobody_asked_for() -> None:
    response = "<think>sort</think>\n  one\n  two\n"
    assert checked_part(response, "", None, None) == response.strip()
    assert checked_part(response, "", None, TEMPLATE) == "one\ntwo"
    assert checked_part("<think>so", "", None, TEMPLATE) is None

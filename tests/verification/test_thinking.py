"""Thinking: its end, an end that never comes, and prompts that begin or end it."""

import pytest

from evaluation.verification.thinking import is_closed_by, opens_thought, read_answer

MARK = "</think>"


@pytest.mark.parametrize(
    ("completion", "mark", "answer"),
    [
        ("<think>6*7 = 42. Or is it", MARK, None),
        ("6*7 = 42. Or is it", MARK, None),
        ("<think>6*7 = 42. Or is it", None, None),
        ("<think>6*7</think>\n\n42", MARK, "42"),
        ("6*7</think>42</think>43", MARK, "43"),
        ("42", None, "42"),
        ("<think>It is 18.</think>16", None, "16"),
        ("<think>sort</think>\n \n    return x", None, "    return x"),
        ("sort</think>\n\n    return x", MARK, "    return x"),
        ("<think>sort</think> return x", None, "return x"),
        ("18, so I say\n</think>\n\n16", None, "16"),
        ("18.</think>\n16", None, "16"),
        ("parts = text.split('</think>')\n", None, "parts = text.split('</think>')\n"),
        ("Write `<think>`\n and `</think>`\n", None, "Write `<think>`\n and `</think>`\n"),
        ("<|begin_of_thought|>18<|end_of_thought|>16", None, "16"),
        ("<reasoning>\n18\n</reasoning>\n<answer>16</answer>", None, "<answer>16</answer>"),
        ("[THINK]18[/THINK]16", None, "16"),
        ("<|channel|>analysis<|message|>18<|end|><|channel|>final<|message|>16", None, "16"),
        ("It ends with </think> as usual: 16", None, "It ends with </think> as usual: 16"),
        ("The tag <think> begins a thought.", None, "The tag <think> begins a thought."),
        ("", MARK, None),
    ],
)
def test_answer_after_a_mark_that_a_task_names(
    completion: str, mark: str | None, answer: str | None
) -> None:
    assert read_answer(completion, mark) == answer


def test_a_prompt_may_end_the_thinking_or_begin_it() -> None:
    closed, opened = "<|assistant|>\n<think>\n\n</think>\n\n", "<|assistant|>\n<think>\n"
    assert [is_closed_by(text, MARK) for text in (closed, opened, "")] == [True, False, False]
    assert [opens_thought(text) for text in (closed, opened, "")] == [False, True, False]
    assert read_answer("42", MARK, is_required=False) == "42"
    assert read_answer("<think>42", MARK, is_required=False) is None

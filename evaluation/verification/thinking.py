"""Separates a model's thinking from its answer."""

import re
import textwrap

ENDS = (
    "</think>",
    "</thinking>",
    "</thought>",
    "</reasoning>",
    "</analysis>",
    "</reflection>",
    "<|end_of_thought|>",
    "<unused95>",
    "</seed:think>",
    "[/THINK]",
    "<|END_THINKING|>",
    "◁/think▷",
    "<|channel|>final<|message|>",
)
"""Marks that end a model's thinking, as chat templates write them."""

_OPENINGS = re.compile(
    r"<(?:think|thinking|thought|reasoning|analysis|reflection|seed:think)>|<\|begin_of_thought\|>"
    r"|<unused94>|\[THINK\]|<\|START_THINKING\|>|◁think▷|<\|channel\|>analysis<\|message\|>"
)
_CLOSED = re.compile(
    r"\A(?:(?!<think>|`).)*?(?:(?:\A|\n)[^\S\n]*</think>|</think>[^\S\n]*(?=\n|\Z))", re.DOTALL
)
_EMPTY = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>\s*</\1>[^\S\n]*")


def end_of_thinking(answer_after: str | None, template: str | None) -> str | None:
    """Return the suite's own mark that ends the thinking, or else the one in the chat template."""
    return answer_after or next((mark for mark in ENDS if mark in (template or "")), None)


def read_answer(completion: str, mark: str | None, *, is_required: bool = True) -> str | None:
    """Return the part of a completion that verifiers read: what follows the last mark, or all without one.

    Without a mark of the suite or template, that is what follows a thought with which the completion
    begins. lm-evaluation-harness's `think_end_token` cuts in the same way where the mark occurs, but
    for indentation. None stands for thinking that is unfinished: the mark does not occur, or a thought
    is opened and not closed.

    Args:
        is_required: Whether a completion without the mark has no answer, even if it opens no thought.
    """
    if mark is not None and mark in completion:
        return _from_first_line(completion.rpartition(mark)[2])
    if mark is not None and is_required:
        return None
    return _behind_thought(completion)


def _behind_thought(completion: str) -> str | None:
    """Return what follows a thought with which a completion begins; None where no known mark ends it.

    The prompt may have begun the thought: then only its end is in the completion, on a line's border.
    """
    if _OPENINGS.match(completion.lstrip()) is None:
        closed = _CLOSED.match(completion)
        return completion if closed is None else _from_first_line(completion[closed.end() :])
    ends = [completion.rfind(end) + len(end) for end in ENDS if end in completion]
    return _from_first_line(completion[max(ends) :]) if ends else None


def _from_first_line(text: str) -> str:
    """Return a text without empty lines at its beginning; the body of a function keeps its indentation."""
    empty = re.match(r"\s*\n", text)
    return text[empty.end() :] if empty else text.lstrip()


def opens_thought(prompt: str) -> bool:
    """Return whether a prompt ends with the beginning of a thought, as some chat templates do."""
    end = prompt.rstrip()[-40:]
    return any(match.end() == len(end) for match in _OPENINGS.finditer(end))


def is_closed_by(prompt: str, mark: str | None) -> bool:
    """Return whether a prompt already ends the thinking, as templates do that turn it off."""
    return mark is not None and prompt.rstrip().endswith(mark)


def checked_part(response: str, mark: str | None, *, is_required: bool) -> str | None:
    """Return the part of a response that checks of probes read; None where the thinking is unfinished.

    It is without an empty thought, white space around it, and indentation that all lines share. Without
    a mark, a thought is part of the response: the model was not asked to think.

    Args:
        is_required: Whether a response without the mark has no answer, even if it opens no thought.
    """
    answer = read_answer(response, mark, is_required=is_required)
    if answer is None:
        return None
    answer = response if mark is None else answer
    return textwrap.dedent(_EMPTY.sub("", answer).strip("\n")).strip()

"""Where a model's thinking ends and its answer to a probe begins."""

import re
import textwrap

from evaluation.settings.generation import read_part

ENDS = (
    "</think>",
    "</thinking>",
    "</thought>",
    "</reasoning>",
    "</seed:think>",
    "[/THINK]",
    "<|END_THINKING|>",
    "◁/think▷",
    "<|channel|>final<|message|>",
)
"""What ends the thinking of models that think, as their chat templates write it."""

_EMPTY = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>\s*</\1>[^\S\n]*")


def end_of_thinking(answer_after: str | None, template: str | None) -> str | None:
    """The suite's `answer_after`, or else the mark that the chat template itself has."""
    return answer_after or next((mark for mark in ENDS if mark in (template or "")), None)


def checked_part(response: str, mark: str | None) -> str:
    """What checks read: what follows the mark, without an empty thought or white space around it.

    An indentation that all lines have is such white space, too.
    """
    return textwrap.dedent(_EMPTY.sub("", read_part(response, mark)).strip("\n")).strip()

"""Separates a model's thinking from its answer."""

import re
import textwrap

THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<unused94>": "<unused95>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
"""Marks that begin a thought, as chat templates write them, with those that end it."""


def end_of_thinking(answer_after: str | None, template: str | None) -> str | None:
    """Return the suite's own mark that ends the thinking, or else the one in the chat template."""
    return answer_after or next((end for end in THOUGHTS.values() if end in (template or "")), None)


def answer_part(
    completion: str, prompt: str, answer_after: str | None, template: str | None
) -> str | None:
    """Return what follows the thinking in a completion; all of it without thinking, None if unfinished.

    Thinking is unfinished where the prompt or the completion begins a thought whose end never comes, and
    where `answer_after` names a mark that neither of them has.

    Args:
        template: The chat template, whose own mark counts where the suite names none.
    """
    mark = end_of_thinking(answer_after, template)
    if mark is None or mark not in completion:
        if answer_after and not prompt.rstrip().endswith(answer_after):
            return None
        begun = (prompt.rstrip(), str.endswith), (completion.lstrip(), str.startswith)
        opening = next((one for text, opens in begun for one in THOUGHTS if opens(text, one)), None)
        if opening is None:
            return completion
        mark = THOUGHTS[opening]
        if mark not in completion:
            return None
    return _without_empty_lines(completion.rpartition(mark)[2])


def checked_part(
    response: str, prompt: str, answer_after: str | None, template: str | None
) -> str | None:
    """Return the part of a response that checks of probes read; None where the thinking is unfinished.

    It is without white space around it, and without indentation that all lines share. Where neither suite
    nor template ends a thought, it is part of the response: the model was not asked to think.
    """
    answer = answer_part(response, prompt, answer_after, template)
    if answer is None:
        return None
    if end_of_thinking(answer_after, template) is None:
        answer = response
    return textwrap.dedent(answer.strip("\n")).strip()


def _without_empty_lines(text: str) -> str:
    """Return a text without empty lines at its beginning; the body of a function keeps its indentation."""
    empty = re.match(r"\s*\n", text)
    return text[empty.end() :] if empty else text.lstrip()

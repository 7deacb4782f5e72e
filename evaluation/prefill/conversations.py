"""Conversations as text, by a chat template, and what ends an answer in it."""

import random
from collections.abc import Sequence

from evaluation.errors import SourceError
from evaluation.prefill.limits import OutOfTime, row_limits
from evaluation.prefill.templates import reason_of
from evaluation.prefill.tokenizers import AnyTokenizer, default_template, encode
from evaluation.settings.plan import StagePlan
from evaluation.settings.probes import Message

_DATE = "01 Jan 2025"
"""What a template that writes the date is told, so that a prompt is the same on every day."""

_CLOCK = (
    "{%- macro strftime_now(format) -%}{{ format | replace('%d', '01') | replace('%m', '01') "
    "| replace('%b', 'Jan') | replace('%B', 'January') | replace('%Y', '2025') "
    "| replace('%A', 'Wednesday') | replace('%H', '12') | replace('%M', '00') "
    "| replace('%S', '00') }}{%- endmacro -%}"
)
"""Put before a template that asks for the time, in place of the clock's own function."""

_ASKED, _REPLY = "ASKED", "REPLY"


def chat_template(tokenizer: AnyTokenizer, plan: StagePlan) -> str:
    """The template of a stage's conversations as Jinja2 text; raises SourceError if there is none."""
    template = plan.suite.chat_template or default_template(tokenizer)
    if template is None:
        raise SourceError(
            f"tokenizer {plan.tokenizer.name} has no chat template, and none is given for "
            f"{plan.name}: set `chat_template:` in the suite that asks for conversations"
        )
    return template


def render_chat(
    tokenizer: AnyTokenizer, template: str, name: str, messages: Sequence[Message], *, answer: bool
) -> str:
    """The conversation as text, up to where the answer begins if one is wanted."""
    undrawn = random.getstate()
    try:
        with row_limits():
            text = tokenizer.apply_chat_template(
                [message.model_dump() for message in messages],
                chat_template=(_CLOCK if "strftime_now" in template else "") + template,
                tokenize=False,
                add_generation_prompt=answer,
                date_string=_DATE,
            )
    except (Exception, OutOfTime) as error:  # noqa: BLE001 - templates raise what they like
        raise SourceError(
            f"{name}: the chat template cannot render these messages "
            f"({reason_of(error)}); reword them or set another `chat_template:` in the "
            "suite"
        ) from None
    if random.getstate() != undrawn:
        raise SourceError(
            f"{name}: the chat template draws at random, and prompts must be the same whenever they are "
            "made; set another `chat_template:` in the suite"
        )
    if not text.strip():
        raise SourceError(
            f"{name}: the chat template makes nothing of these messages; set another "
            "`chat_template:` in the suite"
        )
    return str(text)


def end_of_turn(tokenizer: AnyTokenizer, template: str) -> tuple[list[int], list[str]]:
    """What the template puts after an answer: token ids if it is a token, else a stop string.

    A base model's tokenizer may not know the token that the template writes out. Raises SourceError
    for a template that writes no message.
    """
    messages = (Message(role="user", content=_ASKED), Message(role="assistant", content=_REPLY))
    text = render_chat(tokenizer, template, "chat_template", messages, answer=False)
    if not any(word.casefold() in text.casefold() for word in (_ASKED, _REPLY)):
        raise SourceError(
            "chat_template: it writes nothing of the messages, so that all prompts would be the same; "
            "set another `chat_template:` in the suite"
        )
    after = text.rpartition(_REPLY)[2].strip() if _REPLY in text else ""
    if not after:
        return [], []
    first = encode(tokenizer, [after])[0][0]
    if first in tokenizer.added_tokens_decoder or first in tokenizer.all_special_ids:
        return [int(first)], []
    return [], [after.splitlines()[0].rstrip()]

"""Conversations rendered by a chat template, as transformers does, and what ends an answer in them."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.templates import reason_of
from evaluation.settings.suites import Message
from evaluation.tokenizers.base import LoadedTokenizer

log = logging.getLogger(__name__)

_DATE = "01 Jan 2025"
"""The date for templates that write it, so that a prompt is the same on every day."""

_CLOCK = (
    "{%- macro strftime_now(format) -%}{{ format | replace('%d', '01') | replace('%m', '01') "
    "| replace('%b', 'Jan') | replace('%B', 'January') | replace('%Y', '2025') "
    "| replace('%A', 'Wednesday') | replace('%H', '12') | replace('%M', '00') "
    "| replace('%S', '00') }}{%- endmacro -%}"
)
"""Put before a template that calls `strftime_now`, to replace that function."""

_ANOTHER = "set another `chat_template:` in the suite"

_ASKED, _REPLY = "ASKED", "REPLY"


def render_chat(
    tokenizer: LoadedTokenizer,
    template: str,
    variables: Mapping[str, Any],
    name: str,
    messages: Sequence[Message],
    *,
    answer: bool = True,
) -> str:
    """Return a conversation as text, which is always the same, as templates see a fixed date.

    Args:
        variables: Values that the template reads besides the messages.
        answer: Whether the text ends where the next answer begins.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        (text,), _ = render_jinja_template(
            conversations=[[message.model_dump() for message in messages]],
            chat_template=(_CLOCK if "strftime_now" in template else "") + template,
            add_generation_prompt=answer,
            **{**tokenizer.special, "date_string": _DATE, **variables},
        )
    except Exception as error:  # noqa: BLE001 - templates raise what they like
        raise SourceError(
            f"{name}: the chat template cannot render these messages ({reason_of(error)}); reword them "
            f"or {_ANOTHER}"
        ) from None
    if not text.strip():
        raise SourceError(f"{name}: the chat template writes no text of these messages; {_ANOTHER}")
    return str(text)


def warn_of_unread(key: str, template: str, variables: Mapping[str, Any]) -> None:
    """Log the `chat_template_kwargs` that a template does not read, so that they change no prompt."""
    if unread := [n for n in variables if not re.search(rf"\b{re.escape(n)}\b", template)]:
        log.warning(
            "%s.chat_template_kwargs: the chat template reads no %s; prompts are the same without it",
            *(key, ", ".join(unread)),
        )


def warn_of_lost(key: str, chats: Iterable[tuple[Sequence[Message], str]]) -> None:
    """Log which messages' text the rendered prompts lack: templates may drop an earlier turn's thinking."""
    lost = [
        (number, message)
        for messages, text in chats
        for number, message in enumerate(messages)
        if " ".join(message.content.split()) not in " ".join(text.split())
    ]
    if lost:
        number, message = lost[0]
        log.warning(
            "%s: the chat template leaves out text of %d messages (the first: message %d of a prompt, "
            "%s's, %.60r); write it otherwise, or %s",
            *(key, len(lost), number, message.role, message.content, _ANOTHER),
        )


def answer_ends(
    tokenizer: LoadedTokenizer, template: str | None, variables: Mapping[str, Any]
) -> tuple[list[int], list[str]]:
    """Return the token ids and strings that end a completion besides its task's settings.

    `template` is None where prompts are plain text.
    """
    ids, strings = ([], []) if template is None else _end_of_turn(tokenizer, template, variables)
    eos = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    return sorted({*eos, *ids}), strings


def _end_of_turn(
    tokenizer: LoadedTokenizer, template: str, variables: Mapping[str, Any]
) -> tuple[list[int], list[str]]:
    """Return what the template puts after an answer: a token's id, or else a stop string, or nothing.

    A base model's tokenizer may lack the token that the template writes out.
    """
    messages = (Message(role="user", content=_ASKED), Message(role="assistant", content=_REPLY))
    text = render_chat(tokenizer, template, variables, "chat_template", messages, answer=False)
    if not any(word.casefold() in text.casefold() for word in (_ASKED, _REPLY)):
        raise SourceError(
            "chat_template: it writes nothing of the messages, so that all prompts would be the same; "
            f"{_ANOTHER}"
        )
    after = text.rpartition(_REPLY)[2].strip() if _REPLY in text else ""
    if not after:
        return [], []
    first = tokenizer.encode([after])[0][0]
    if first in tokenizer.whole_tokens:
        return [first], []
    return [], [after.splitlines()[0].rstrip()]

"""Prompts as token ids: conversations rendered by a chat template, and Tier4's probes.

Prefill writes them once for all steps: `prompts.jsonl`, then `meta.json`. A checkpoint and its bridge
get the same token ids and stop at the same tokens and strings, whatever their own configurations say.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from evaluation.errors import ConfigError, SourceError
from evaluation.files import fingerprint, unordered, write_jsonl
from evaluation.prefill.caches import PROMPTS
from evaluation.prefill.definitions import chat_template, probes_definition, saved_description
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.templates import reason_of
from evaluation.prefill.tokenizers import prefill_tokenizer
from evaluation.prefill.window import Window, generation_window, report_lengths
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import Message
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.chat import render_template
from evaluation.tokenizers.encoding import bos_ids, put_before

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


def prefill_probes(plan: StagePlan, _: str = "") -> None:
    """Write a stage's prompts, which are one entry, unless they are there already.

    Raises:
        ConfigError: A prompt leaves no room for its answer in the sequence length.
        SourceError: There is no chat template, or it refuses a conversation.
    """
    tokenizer, about = prefill_tokenizer(plan)
    definition = probes_definition(plan, plan.name, about)
    if is_current(plan.probes_folder, definition):
        return
    window = generation_window(plan)
    rows = _probe_rows(plan, tokenizer, about)
    shortened = _fit(plan, rows, window)
    chats = _chats_of_probes(plan, tokenizer, about)
    eos_ids = sorted({id for chat in chats for id in chat["eos_token_ids"]})
    with new_entry(plan.probes_folder) as building:
        write_jsonl(building / PROMPTS, rows)
        meta = {
            "definition": definition,
            "protocol": protocol.PREFILL_PROBES,
            "items": {"asked": len(rows), "used": len(rows), "left_out": {}},
            "chats": chats,
            "shortened": shortened,
            "window": asdict(window),
            **prompts_meta(plan, about, rows, eos_ids),
        }
        write_meta(building, meta, [PROMPTS])


def _chats_of_probes(
    plan: StagePlan, tokenizer: LoadedTokenizer, about: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the settings of conversations, each once, with the probes that they are of."""
    chats: dict[str, dict[str, Any]] = {}
    for name, probe in plan.suite.probes.items():
        template, variables = chat_template(plan, probe, about), probe.chat_template_kwargs
        stop = list(probe.stop or ())
        key = fingerprint([template, unordered(variables), stop])
        if key not in chats:
            warn_of_unread(f"probes.{name}", template, variables)
            eos_ids, strings = answer_ends(tokenizer, template, variables)
            chats[key] = {
                "probes": [],
                "chat_template": template,
                "chat_template_kwargs": variables,
                "stop": [*stop, *(text for text in strings if text not in stop)],
                "eos_token_ids": eos_ids,
            }
        chats[key]["probes"].append(name)
    return list(chats.values())


def _probe_rows(
    plan: StagePlan, tokenizer: LoadedTokenizer, about: Mapping[str, Any]
) -> list[dict[str, Any]]:
    probes = plan.suite.probes
    texts = [
        render_chat(
            tokenizer,
            chat_template(plan, probe, about),
            probe.chat_template_kwargs,
            f"probes.{name}",
            probe.messages,
        )
        for name, probe in probes.items()
    ]
    for (name, probe), text in zip(probes.items(), texts, strict=True):
        warn_of_lost(f"probes.{name}", [(probe.messages, text)])
    tokens = encode_prompts(plan, tokenizer, texts)
    return [
        {
            "id": name,
            "messages": [message.model_dump() for message in probe.messages],
            "max_new_tokens": probe.max_new_tokens,
            "prompt": text,
            "tokens": ids,
        }
        for (name, probe), text, ids in zip(probes.items(), texts, tokens, strict=True)
    ]


def _fit(plan: StagePlan, rows: Sequence[dict[str, Any]], window: Window) -> list[str]:
    """Give each answer what is left of the window; return the probes for which that is less."""
    longer, shortened = [], []
    for row in rows:
        wanted = row["max_new_tokens"]
        room = window.room(len(row["tokens"]), wanted)
        if room is None:
            longer.append(f"{row['id']} ({len(row['tokens'])} + {wanted})")
        elif room < wanted:
            row["max_new_tokens"] = room
            shortened.append(row["id"])
    if longer:
        raise ConfigError(
            f"probes of {plan.name}: prompt and max_new_tokens together exceed the window of "
            f"{window.tokens} tokens for {', '.join(longer)}; lower max_new_tokens, shorten the prompts, "
            "or set `generation: {window: …}` if the model can use more"
        )
    longest = max((len(row["tokens"]) + row["max_new_tokens"] for row in rows), default=0)
    report_lengths(f"probes of {plan.name}", window, longest, shortened)
    return shortened


def encode_prompts(
    plan: StagePlan, tokenizer: LoadedTokenizer, texts: Sequence[str]
) -> list[list[int]]:
    """Return the ids of each text, with BOS in front where the configuration requires it.

    BOS is not repeated where a template wrote it.
    """
    start = bos_ids(tokenizer, plan.tokenizer.prepend_bos)
    # Many templates write BOS themselves.
    return [put_before(start, ids) for ids in tokenizer.encode(texts)]


def prompts_meta(
    plan: StagePlan,
    about: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    eos_ids: Sequence[int],
) -> dict[str, Any]:
    """Return the keys of a meta.json that probes and generation tasks share."""
    return {
        "max_tokens": max(len(row["tokens"]) + row["max_new_tokens"] for row in rows),
        "vocab_size_needed": 1 + max([*eos_ids, *(max(row["tokens"]) for row in rows)]),
        "eos_token_ids": list(eos_ids),
        "sequence_length": plan.sequence_length,
        "tokenizer": saved_description(about),
    }


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

    Raises:
        SourceError: The template refuses the messages, or writes nothing.
    """
    try:
        text = render_template(
            tokenizer,
            (_CLOCK if "strftime_now" in template else "") + template,
            [message.model_dump() for message in messages],
            {"date_string": _DATE, **variables},
            answer=answer,
        )
    except Exception as error:  # noqa: BLE001 - templates raise what they like
        raise SourceError(
            f"{name}: the chat template cannot render these messages ({reason_of(error)}); reword them "
            f"or {_ANOTHER}"
        ) from None
    if not text.strip():
        raise SourceError(f"{name}: the chat template writes no text of these messages; {_ANOTHER}")
    return text


def warn_of_unread(key: str, template: str, variables: Mapping[str, Any]) -> None:
    """Log the `chat_template_kwargs` that a template does not read, so that they change no prompt."""
    if unread := [n for n in variables if not re.search(rf"\b{re.escape(n)}\b", template)]:
        log.warning(
            "%s.chat_template_kwargs: the chat template reads no %s; prompts are the same without it",
            *(key, ", ".join(unread)),
        )


def warn_of_lost(key: str, chats: Iterable[tuple[Sequence[Message], str]]) -> None:
    """Log which messages' text the rendered prompts lack: templates may drop an earlier turn's thinking.

    Args:
        key: Place of the item in the suite.
        chats: Conversations, each with its prompt.
    """
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

    Raises:
        SourceError: The template writes no message.
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

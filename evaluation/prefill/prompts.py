"""Prompts as token ids: conversations as text, what the window leaves to their answers; Tier4's probes.

Prefill writes them once for all steps: `prompts.jsonl`, then `meta.json`. A checkpoint and its bridge
get the same token ids and stop at the same tokens and strings, whatever their own configurations say.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import ConfigError, SourceError, first_few
from evaluation.files import fingerprint, unordered, write_jsonl
from evaluation.prefill.caches import PROMPTS
from evaluation.prefill.entries import counted
from evaluation.prefill.templates import reason_of
from evaluation.prefill.tiers import chat_template
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import model_positions
from evaluation.settings.suites import Message
from evaluation.tokenizers.base import LoadedTokenizer
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


def prefill_probes(
    plan: StagePlan, _: str, about: Mapping[str, Any], building: Path
) -> dict[str, Any]:
    """Write a stage's prompts, which are one entry; return its part of meta.json."""
    key = f"probes of {plan.name}"
    rows, chats = _rendered_probes(plan, stage_tokenizer(plan), about)
    rows, fitted = fit(plan, key, rows)
    if too_long := fitted.pop("too_long"):
        raise ConfigError(
            f"{key}: no room for the answer to {first_few(too_long)}; lower `max_new_tokens`, shorten "
            "the prompts, or set `generation: {window: …}` if the model can use more"
        )
    eos_ids = sorted({id for chat in chats for id in chat["eos_token_ids"]})
    write_jsonl(building / PROMPTS, rows)
    return {
        "protocol": protocol.PREFILL_PROBES,
        "items": counted(len(rows), len(rows)),
        "chats": chats,
        **fitted,
        **prompts_meta(plan, rows, eos_ids),
    }


def _rendered_probes(
    plan: StagePlan, tokenizer: LoadedTokenizer, about: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the lines of `prompts.jsonl`, and the settings of conversations, each once with its probes."""
    rows: list[dict[str, Any]] = []
    chats: dict[str, dict[str, Any]] = {}
    for name, probe in plan.suite.probes.items():
        template, variables = chat_template(plan, probe, about), probe.chat_template_kwargs
        text = render_chat(tokenizer, template, variables, f"probes.{name}", probe.messages)
        warn_of_lost(f"probes.{name}", [(probe.messages, text)])
        messages = [message.model_dump() for message in probe.messages]
        asked = {"messages": messages, "max_new_tokens": probe.max_new_tokens, "prompt": text}
        (tokens,) = encode_prompts(plan, tokenizer, [text])
        rows.append({"id": name, **asked, "tokens": tokens})
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
    return rows, list(chats.values())


def generation_window(plan: StagePlan) -> int:
    """Return the tokens that prompt and answer may have: `generation.window`, or else the model's positions.

    There are at least the stage's sequence length of these.
    """
    positions = max(plan.sequence_length, model_positions(plan.config, plan.stage) or 0)
    return plan.config.generation.window or positions


def fit(
    plan: StagePlan, key: str, rows: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of `prompts.jsonl` whose answers have room, and the keys of meta.json that say so.

    An answer gets what the window leaves behind its prompt, at most `max_new_tokens`. A prompt that leaves
    less than a quarter of these, and less than 1,024 tokens, is left out.
    """
    window, kept = generation_window(plan), list[dict[str, Any]]()
    too_long, shortened = list[str](), list[str]()
    for row in rows:
        wanted, left = row["max_new_tokens"], window - len(row["tokens"])
        if left < max(1, min(wanted / 4, 1024)):
            too_long.append(row["id"])
            continue
        kept.append({**row, "max_new_tokens": min(wanted, left)})
        shortened += [row["id"]] * (left < wanted)
    if not kept:
        shortest = min(len(row["tokens"]) for row in rows)
        raise SourceError(
            f"{key}: no prompt leaves room for its answer in a window of {window:,} tokens, as the shortest "
            f"has {shortest:,} tokens; set `generation: {{window: …}}` if the model can use more, lower "
            f"`max_new_tokens` to {max(1, window - shortest)} or less, or lower `num_fewshot`"
        )
    if too_long or shortened:
        log.warning(
            "%s: of %d prompts, %d are left out and %d get shorter answers, as the window has %d tokens",
            *(key, len(rows), len(too_long), len(shortened), window),
        )
    longest = max(len(row["tokens"]) + row["max_new_tokens"] for row in kept)
    if longest > plan.sequence_length:
        log.warning(
            "%s: prompt and answer have up to %d tokens, more than the stage's sequences (%d): if training "
            "had no longer ones, late parts of such answers say little",
            *(key, longest, plan.sequence_length),
        )
    found = {"too_long": too_long, "shortened": shortened, "window": {"tokens": window}}
    return kept, {**found, "max_tokens": longest}


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
    plan: StagePlan, rows: Sequence[Mapping[str, Any]], eos_ids: Sequence[int]
) -> dict[str, Any]:
    """Return the keys of a meta.json that probes and generation tasks share."""
    return {
        "vocab_size_needed": 1 + max([*eos_ids, *(max(row["tokens"]) for row in rows)]),
        "eos_token_ids": list(eos_ids),
        "sequence_length": plan.sequence_length,
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

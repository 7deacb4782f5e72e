"""Prompts as token ids: conversations as text, what the window leaves to their answers; Tier4's probes.

Prefill writes them once for all steps: `prompts.jsonl`, then `meta.json`. A checkpoint and its bridge
get the same token ids and stop at the same tokens and strings, whatever their own configurations say.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import ConfigError, SourceError, first_few, with_class
from evaluation.files import fingerprint, unordered, write_jsonl
from evaluation.prefill.caches import PROMPTS
from evaluation.prefill.entries import counted
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


class Chat:
    """Turns a stage's conversations into text as transformers does, and says what ends an answer in them.

    `template` is None where prompts are plain text. The same messages always give the same text, as
    templates see a fixed date. `variables` are values that the template reads besides the messages, and
    `key` is for messages.
    """

    def __init__(
        self,
        tokenizer: LoadedTokenizer,
        template: str | None,
        variables: Mapping[str, Any],
        key: str,
    ) -> None:
        self.template, self.variables = template, variables
        self._tokenizer, self._key = tokenizer, key
        self._lost = list[tuple[str, int, Message]]()
        words = re.findall(r"\w+", template or "")
        if unread := ", ".join(name for name in variables if name not in words):
            said = "%s.chat_template_kwargs: the chat template reads no %s; prompts are the same without it"
            log.warning(said, key, unread)

    def text(self, name: str, turns: str | Sequence[Message], *, answer: bool = True) -> str:
        """Return the text of a prompt; unless `answer` is false, it ends where the answer begins."""
        if isinstance(turns, str):
            return turns
        from transformers.utils.chat_template_utils import render_jinja_template

        template = self.template or ""
        try:
            (text,), _ = render_jinja_template(
                conversations=[[message.model_dump() for message in turns]],
                chat_template=(_CLOCK if "strftime_now" in template else "") + template,
                add_generation_prompt=answer,
                **{**self._tokenizer.special, "date_string": _DATE, **self.variables},
            )
        except Exception as error:  # noqa: BLE001 - templates raise what they like
            raise SourceError(
                f"{name}: the chat template cannot render these messages ({with_class(error)}); reword them "
                f"or {_ANOTHER}"
            ) from None
        if not text.strip():
            raise SourceError(
                f"{name}: the chat template writes no text of these messages; {_ANOTHER}"
            )
        plain = " ".join(text.split())
        self._lost += (
            (name, number, turn)
            for number, turn in enumerate(turns)
            if " ".join(turn.content.split()) not in plain
        )
        return str(text)

    def warn_of_lost(self) -> None:
        """Log which messages' text the prompts so far lack: templates may drop an earlier turn's thinking."""
        if self._lost:
            name, number, message = self._lost[0]
            which = f"message {number} of {name}, {message.role}'s, {message.content[:60]!r}"
            log.warning(
                "%s: the chat template leaves out text of %d messages (the first: %s); reword it, or %s",
                *(self._key, len(self._lost), which, _ANOTHER),
            )

    def ends(self) -> tuple[list[int], list[str]]:
        """Return the token ids and strings that end a completion besides its task's settings."""
        ids, strings = ([], []) if self.template is None else self._end_of_turn()
        eos = [] if self._tokenizer.eos_token_id is None else [int(self._tokenizer.eos_token_id)]
        return sorted({*eos, *ids}), strings

    def _end_of_turn(self) -> tuple[list[int], list[str]]:
        """Return what the template puts after an answer: a token's id, or else a stop string, or nothing.

        A base model's tokenizer may lack the token that the template writes out.
        """
        messages = (Message(role="user", content=_ASKED), Message(role="assistant", content=_REPLY))
        lost, self._lost = self._lost, []
        text, self._lost = self.text("chat_template", messages, answer=False), lost
        if not any(word.casefold() in text.casefold() for word in (_ASKED, _REPLY)):
            raise SourceError(
                "chat_template: it writes nothing of the messages, so that all prompts would be the same; "
                f"{_ANOTHER}"
            )
        after = text.rpartition(_REPLY)[2].strip() if _REPLY in text else ""
        if not after:
            return [], []
        first = self._tokenizer.encode([after])[0][0]
        if first in self._tokenizer.whole_tokens:
            return [first], []
        return [], [after.splitlines()[0].rstrip()]


def prefill_probes(
    plan: StagePlan, _: str, about: Mapping[str, Any], building: Path
) -> dict[str, Any]:
    """Write a stage's prompts, which are one entry; return its part of meta.json."""
    key, tokenizer = f"probes of {plan.name}", stage_tokenizer(plan)
    rows, chats = list[dict[str, Any]](), dict[str, tuple[Chat, list[str], list[str]]]()
    for name, probe in plan.suite.probes.items():
        template, variables = chat_template(plan, probe, about), probe.chat_template_kwargs
        stop = list(probe.stop or ())
        same = fingerprint([template, unordered(variables), stop])
        if same not in chats:
            chats[same] = Chat(tokenizer, template, variables, f"probes.{name}"), stop, []
        chats[same][2].append(name)
        text = chats[same][0].text(f"probes.{name}", probe.messages)
        messages = [message.model_dump() for message in probe.messages]
        asked = {"messages": messages, "max_new_tokens": probe.max_new_tokens, "prompt": text}
        rows.append({"id": name, **asked, "tokens": encode_prompts(plan, tokenizer, [text])[0]})
    described = [_described(*chat) for chat in chats.values()]
    eos_ids = sorted({id for chat in described for id in chat["eos_token_ids"]})
    rows, fitted = fit(plan, key, rows, eos_ids)
    if too_long := fitted.pop("too_long"):
        raise ConfigError(
            f"{key}: no room for the answer to {first_few(too_long)}; lower `max_new_tokens`, shorten "
            "the prompts, or set `generation: {window: …}` if the model can use more"
        )
    write_jsonl(building / PROMPTS, rows)
    items = counted(len(rows), len(rows))
    return {"protocol": protocol.PREFILL_PROBES, "items": items, "chats": described, **fitted}


def _described(chat: Chat, stop: list[str], probes: list[str]) -> dict[str, Any]:
    """Return the settings that conversations of these probes share, for meta.json."""
    chat.warn_of_lost()
    eos_ids, strings = chat.ends()
    return {
        "probes": probes,
        "chat_template": chat.template,
        "chat_template_kwargs": chat.variables,
        "stop": [*stop, *(text for text in strings if text not in stop)],
        "eos_token_ids": eos_ids,
    }


def generation_window(plan: StagePlan) -> int:
    """Return the tokens of prompt and answer: `generation.window`, or the model's positions if known."""
    positions = max(plan.sequence_length, model_positions(plan.config, plan.stage) or 0)
    return plan.config.generation.window or positions


def fit(
    plan: StagePlan, key: str, rows: Sequence[dict[str, Any]], eos_ids: Sequence[int]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of `prompts.jsonl` whose answers have room, and the keys of meta.json about them.

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
    return kept, {
        "too_long": too_long,
        "shortened": shortened,
        "window": {"tokens": window},
        "max_tokens": longest,
        "vocab_size_needed": 1 + max([*eos_ids, *(max(row["tokens"]) for row in kept)]),
        "eos_token_ids": list(eos_ids),
        "sequence_length": plan.sequence_length,
    }


def encode_prompts(
    plan: StagePlan, tokenizer: LoadedTokenizer, texts: Sequence[str]
) -> list[list[int]]:
    """Return the ids of each text, with BOS in front where it has to be and no template wrote it."""
    start = bos_ids(tokenizer, plan.tokenizer.prepend_bos)
    return [put_before(start, ids) for ids in tokenizer.encode(texts)]

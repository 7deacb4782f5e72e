"""Tier4 prompts: conversations rendered by the chat template and tokenized, once for all steps.

Written to `prompts.jsonl`, with a `meta.json` last. A checkpoint and its bridge answer the same
token ids and stop at the same tokens and strings, whatever their own configurations say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.errors import ConfigError, SourceError
from evaluation.files import write_jsonl
from evaluation.prefill.caches import PROMPTS, check_files, checked_meta, read_lines
from evaluation.prefill.definitions import probes_definition
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.limits import OutOfTime, row_limits
from evaluation.prefill.models import ProbesMeta, PromptLine
from evaluation.prefill.templates import reason_of
from evaluation.prefill.tokenizers import (
    AnyTokenizer,
    bos_ids,
    default_template,
    describe,
    encode,
    prefill_tokenizer,
)
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import Message, Probe

_DATE = "01 Jan 2025"
"""What a template that writes the date is told, so that a prompt is the same on every day."""

_CLOCK = (
    "{%- macro strftime_now(format) -%}{{ format | replace('%d', '01') | replace('%m', '01') "
    "| replace('%b', 'Jan') | replace('%B', 'January') | replace('%Y', '2025') "
    "| replace('%A', 'Wednesday') | replace('%H', '12') | replace('%M', '00') "
    "| replace('%S', '00') }}{%- endmacro -%}"
)
"""Put before a template that asks for the time, in place of the clock's own function."""

_REPLY = "REPLY"


@dataclass(frozen=True)
class Prompt:
    """A probe as a model sees it."""

    id: str
    messages: tuple[Mapping[str, str], ...]
    max_new_tokens: int
    prompt: str
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class ProbeCache:
    """All prompts of a stage in the order of the suite."""

    prompts: list[Prompt]
    meta: dict[str, Any]


def prefill_probes(plan: StagePlan) -> None:
    """Writes a stage's prompts; returns at once where they are there already.

    Raises:
        ConfigError: for a prompt that leaves its answer no room in the sequence length.
        SourceError: where there is no chat template, or it refuses a conversation.
    """
    tokenizer = prefill_tokenizer(plan)
    template = chat_template(tokenizer, plan)
    about = describe(tokenizer, plan.tokenizer.name, plan.tokenizer.prepend_bos)
    definition = probes_definition(plan, template, about)
    if is_current(plan.probes_folder, definition):
        return
    rows = [
        _row(plan, tokenizer, template, name, probe) for name, probe in plan.suite.probes.items()
    ]
    _check_room(plan, rows)
    with new_entry(plan.probes_folder) as building:
        write_jsonl(building / PROMPTS, rows)
        meta = {"definition": definition, **_meta(plan, tokenizer, template, rows)}
        write_meta(building, meta, [PROMPTS])


def read_probes(folder: Path) -> ProbeCache:
    """Reads what `prefill_probes` wrote; raises CacheError where it is missing or damaged."""
    meta = checked_meta(folder, ProbesMeta)
    check_files(folder, meta, (PROMPTS,))
    lines = read_lines(folder / PROMPTS, PromptLine)
    return ProbeCache([Prompt(**dict(line)) for line in lines], meta)


def chat_template(tokenizer: AnyTokenizer, plan: StagePlan) -> str:
    """The template of a stage's probes as Jinja2 text; raises SourceError if there is none."""
    template = plan.suite.chat_template or default_template(tokenizer)
    if template is None:
        raise SourceError(
            f"tokenizer {plan.tokenizer.name} has no chat template, and none is given for the "
            f"probes of {plan.name}: set `chat_template:` in the suite that holds them"
        )
    return template


def _render(
    tokenizer: AnyTokenizer, template: str, name: str, messages: Sequence[Message], *, answer: bool
) -> str:
    """The conversation as text, up to where the answer begins if one is wanted."""
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
    if not text.strip():
        raise SourceError(
            f"{name}: the chat template makes nothing of these messages; set another "
            "`chat_template:` in the suite"
        )
    return str(text)


def _row(
    plan: StagePlan, tokenizer: AnyTokenizer, template: str, name: str, probe: Probe
) -> dict[str, Any]:
    text = _render(tokenizer, template, f"probes.{name}", probe.messages, answer=True)
    tokens = encode(tokenizer, [text])[0]
    start = bos_ids(tokenizer, plan.tokenizer.prepend_bos)
    if tokens[: len(start)] != start:  # many templates write BOS themselves
        tokens = start + tokens
    return {
        "id": name,
        "messages": [message.model_dump() for message in probe.messages],
        "max_new_tokens": probe.max_new_tokens,
        "prompt": text,
        "tokens": tokens,
    }


def _check_room(plan: StagePlan, rows: list[dict[str, Any]]) -> None:
    room = plan.sequence_length
    longer = [
        f"{row['id']} ({len(row['tokens'])} + {row['max_new_tokens']})"
        for row in rows
        if len(row["tokens"]) + row["max_new_tokens"] > room
    ]
    if longer:
        raise ConfigError(
            f"probes of {plan.name}: prompt and max_new_tokens together exceed sequence_length "
            f"{room} for {', '.join(longer)}; lower max_new_tokens or shorten the prompts"
        )


def end_of_turn(tokenizer: AnyTokenizer, template: str) -> tuple[list[int], list[str]]:
    """What the template puts after an answer: token ids if it is a token, else a stop string.

    A base model's tokenizer may not know the token that the template writes out.
    """
    messages = (Message(role="user", content="Hello"), Message(role="assistant", content=_REPLY))
    text = _render(tokenizer, template, "chat_template", messages, answer=False)
    after = text.rpartition(_REPLY)[2].strip()
    if not after:
        return [], []
    first = encode(tokenizer, [after])[0][0]
    if first in tokenizer.added_tokens_decoder or first in tokenizer.all_special_ids:
        return [int(first)], []
    return [], [after.splitlines()[0].rstrip()]


def _meta(
    plan: StagePlan, tokenizer: AnyTokenizer, template: str, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    ids, strings = end_of_turn(tokenizer, template)
    eos = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    eos_ids = sorted({*eos, *ids})
    return {
        "protocol": protocol.PREFILL_PROBES,
        "items": {"asked": len(rows), "used": len(rows), "left_out": {}},
        "max_tokens": max(len(row["tokens"]) + row["max_new_tokens"] for row in rows),
        "vocab_size_needed": 1 + max([*eos_ids, *(max(row["tokens"]) for row in rows)]),
        "chat_template": template,
        "stop": [*plan.suite.stop, *(text for text in strings if text not in plan.suite.stop)],
        "eos_token_ids": eos_ids,
        "sequence_length": plan.sequence_length,
        "tokenizer": describe(tokenizer, plan.tokenizer.name, plan.tokenizer.prepend_bos),
    }

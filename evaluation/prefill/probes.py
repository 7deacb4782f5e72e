"""Tier4 prompts: conversations rendered by the chat template and tokenized, once for all steps.

Written to `prompts.jsonl`, with a `meta.json` last. A checkpoint and its bridge answer the same
token ids and stop at the same tokens and strings, whatever their own configurations say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.errors import ConfigError
from evaluation.files import write_jsonl
from evaluation.prefill.caches import PROMPTS, check_files, checked_meta, read_lines
from evaluation.prefill.conversations import chat_template, end_of_turn, render_chat
from evaluation.prefill.definitions import probes_definition
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.models import ProbesMeta, PromptLine
from evaluation.prefill.tokenizers import (
    AnyTokenizer,
    bos_ids,
    describe,
    encode,
    prefill_tokenizer,
)
from evaluation.settings.plan import StagePlan
from evaluation.settings.probes import Probe


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


def _row(
    plan: StagePlan, tokenizer: AnyTokenizer, template: str, name: str, probe: Probe
) -> dict[str, Any]:
    text = render_chat(tokenizer, template, f"probes.{name}", probe.messages, answer=True)
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

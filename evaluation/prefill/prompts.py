"""Prompts as token ids, what the window leaves to their answers, and Tier4's probes.

Prefill writes them once for all steps: `prompts.jsonl`, then `meta.json`. A checkpoint and its bridge
get the same token ids and stop at the same tokens and strings, whatever their own configurations say.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import ConfigError, SourceError, first_few
from evaluation.files import fingerprint, unordered, write_jsonl
from evaluation.prefill.caches import PROMPTS
from evaluation.prefill.chats import answer_ends, render_chat, warn_of_lost, warn_of_unread
from evaluation.prefill.entries import counted
from evaluation.prefill.tiers import chat_template
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import model_positions
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import bos_ids, put_before

log = logging.getLogger(__name__)


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

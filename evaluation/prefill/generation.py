"""Tier5 tasks: prompts as token ids in `prompts.jsonl`, documents for verifiers in `docs.jsonl`.

A plain prompt is the description, the solved examples and the question in this order. In a chat, the
description comes before the first question, and every solved example is two turns.

A prompt that leaves less than `max_new_tokens` in the window gets what is left, and one that leaves less
than a quarter, and less than 1,024 tokens, is left out; `meta.json` names both.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import fingerprint, write_jsonl
from evaluation.prefill.caches import DOCUMENTS, PROMPTS, check_cached_golds
from evaluation.prefill.definitions import (
    asked_definition,
    chat_template,
    generation_definition,
)
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.prompts import (
    answer_ends,
    encode_prompts,
    prompts_meta,
    render_chat,
    warn_of_lost,
    warn_of_unread,
)
from evaluation.prefill.provided import provided_prompts
from evaluation.prefill.questions import TaskPrompt, TaskPrompts
from evaluation.prefill.sources import locate_item
from evaluation.prefill.states import Sources
from evaluation.prefill.task_prompts import read_task_prompts
from evaluation.prefill.tokenizers import prefill_tokenizer
from evaluation.prefill.window import Window, generation_window, report_lengths
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask, settled_task
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.verification import nltk_data
from evaluation.verification.golds import check_golds


def prefill_generation_task(plan: StagePlan, name: str) -> None:
    """Write a task to `plan.cache_folder("tier5", name)`; if it is current, only check its golds.

    Raises:
        SourceError: Data cannot be read, a gold is not right by its verifier, two prompts have one id,
            or none fits the window.
        ConfigError: A template does not parse.
    """
    task = plan.suite.generation_tasks[name]
    nltk_data.fetch(plan.nltk_data, nltk_data.needed_by_tasks([task]))
    tokenizer, about = prefill_tokenizer(plan)
    template = chat_template(plan, task, about) if task.chat else None
    definition = generation_definition(plan, name, about)
    folder = plan.cache_folder("tier5", name)
    sources = Sources(plan, list(chain(*locate_item(task, plan.config))))
    window = generation_window(plan)
    if is_current(folder, definition, sources.are_as):
        check_cached_golds(plan, name)
        return
    prompts_read, stop, recorded = _read(plan, name, sources)
    warn_of_unread(f"generation_tasks.{name}", template or "", task.chat_template_kwargs)
    eos_ids, strings = answer_ends(tokenizer, template, task.chat_template_kwargs)
    _check_ends(name, [*stop, *eos_ids, *strings])
    rows, too_long = _tokenized(plan, tokenizer, template, name, prompts_read, window)
    shortened = [row["id"] for row in rows if row["max_new_tokens"] < prompts_read.max_new_tokens]
    meta = {
        "definition": definition,
        "asked_definition": asked_definition(plan, name, about),
        "task": task.model_dump(mode="json"),
        **recorded,
        "items": _counts(prompts_read, len(rows), len(too_long)),
        "too_long": too_long,
        "shortened": shortened,
        "window": asdict(window),
        "solved_examples": asdict(prompts_read.replaced),
        "protocol": protocol.PREFILL_GENERATION,
        "chat_template": template,
        "end_strings": strings,
        **prompts_meta(plan, about, rows, eos_ids),
    }
    report_lengths(f"generation_tasks.{name}", window, meta["max_tokens"], shortened)
    used = [prompt for prompt in prompts_read.prompts if prompt.id not in set(too_long)]
    with new_entry(folder) as building:
        write_jsonl(building / PROMPTS, rows)
        write_jsonl(building / DOCUMENTS, map(_document_line, used))
        write_meta(building, meta, [PROMPTS, DOCUMENTS])


def _check_ends(name: str, ends: Sequence[object]) -> None:
    if not ends:
        raise SourceError(
            f"generation_tasks.{name}: the tokenizer has no end-of-text token and the task no `stop`, "
            "so every answer would run to `max_new_tokens`; give the task a `stop`"
        )


def _document_line(prompt: TaskPrompt) -> dict[str, Any]:
    return {
        "id": prompt.id,
        "document": dict(prompt.document),
        "strata": dict(prompt.strata),
        "question": prompt.question,
        "row": prompt.row,
        "cluster": prompt.cluster,
    }


def _counts(task_prompts: TaskPrompts, used: int, too_long: int) -> dict[str, Any]:
    left_out = {"limit": task_prompts.total - len(task_prompts.prompts), "too_long": too_long}
    return {
        "asked": task_prompts.total,
        "used": used,
        "left_out": {reason: count for reason, count in left_out.items() if count},
    }


def _read(
    plan: StagePlan, name: str, sources: Sources
) -> tuple[TaskPrompts, tuple[str, ...], dict[str, Any]]:
    """Return the prompts, the stop strings, and the record of their origin for meta.json."""
    task = plan.suite.generation_tasks[name]
    if isinstance(task, ProviderTask):
        prompts, info, reported = provided_prompts(plan, name, task)
        recorded = {"provider": reported, "source": sources.describe_provided(info)}
        return prompts, settled_task(task, recorded).stop, recorded
    prompts = read_task_prompts(name, task, sources.origins)
    documents = {prompt.id: prompt.document for prompt in prompts.prompts}
    check_golds(name, task, documents, limits=plan.config.verification, nltk_data=plan.nltk_data)
    checked = fingerprint(task.verifying)
    return prompts, task.stop, {"checked": checked, "source": sources.describe()}


def _tokenized(
    plan: StagePlan,
    tokenizer: LoadedTokenizer,
    template: str | None,
    name: str,
    task_prompts: TaskPrompts,
    window: Window,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the lines of `prompts.jsonl`, and the ids of prompts that do not fit the window."""
    variables = plan.suite.generation_tasks[name].chat_template_kwargs
    texts = [
        prompt.turns
        if isinstance(prompt.turns, str)
        else render_chat(tokenizer, template or "", variables, prompt.id, prompt.turns)
        for prompt in task_prompts.prompts
    ]
    turns = zip((prompt.turns for prompt in task_prompts.prompts), texts, strict=True)
    warn_of_lost(
        f"generation_tasks.{name}", ((one, text) for one, text in turns if not isinstance(one, str))
    )
    encoded = encode_prompts(plan, tokenizer, texts)
    rows, too_long = [], []
    for prompt, text, tokens in zip(task_prompts.prompts, texts, encoded, strict=True):
        room = window.room(len(tokens), task_prompts.max_new_tokens)
        if room is None:
            too_long.append(prompt.id)
        else:
            rows.append({"id": prompt.id, "prompt": text, "max_new_tokens": room, "tokens": tokens})
    if not rows:
        shortest = min(map(len, encoded))
        raise SourceError(_none_fits(plan, name, window, task_prompts.max_new_tokens, shortest))
    return rows, too_long


def _none_fits(plan: StagePlan, name: str, window: Window, room: int, shortest: int) -> str:
    """Return the message for a task whose shortest prompt leaves no room for an answer."""
    left = window.tokens - shortest
    remedies = [
        f"set `generation: {{window: {shortest + room}}}` or more, if the model can use it",
        *([f"lower `max_new_tokens` to {left:,} or less"] if left > 0 else []),
        *(["lower `num_fewshot`"] if plan.suite.generation_tasks[name].num_fewshot else []),
        "take the task out",
    ]
    return (
        f"generation_tasks.{name}: no prompt leaves room for max_new_tokens {room:,} in a window of "
        f"{window.tokens:,} tokens, as the shortest has {shortest:,}; {', or '.join(remedies)}"
    )

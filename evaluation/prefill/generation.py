"""Tier5 tasks: prompts as token ids in `prompts.jsonl`, documents for verifiers in `docs.jsonl`.

A plain prompt is the description, the solved examples and the question in this order. In a chat, the
description comes before the first question, and every solved example is two turns.

`fit` says which prompts have room for their answers; `meta.json` names the others.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import fingerprint, write_jsonl
from evaluation.prefill.caches import DOCUMENTS, PROMPTS
from evaluation.prefill.entries import counted
from evaluation.prefill.prompts import (
    answer_ends,
    encode_prompts,
    fit,
    prompts_meta,
    render_chat,
    warn_of_lost,
    warn_of_unread,
)
from evaluation.prefill.provided import provided_prompts
from evaluation.prefill.sources import describe, locate_item, state_of
from evaluation.prefill.task_prompts import TaskPrompts, read_task_prompts
from evaluation.prefill.tiers import chat_template
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask, settled_task
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.verification.golds import check_golds


def prefill_generation_task(
    plan: StagePlan, name: str, about: Mapping[str, Any], building: Path
) -> dict[str, Any]:
    """Write a task's files; return its part of meta.json."""
    task, key = plan.suite.generation_tasks[name], f"generation_tasks.{name}"
    tokenizer = stage_tokenizer(plan)
    template = chat_template(plan, task, about) if task.chat else None
    read, stop, recorded = _read(plan, name)
    warn_of_unread(key, template or "", task.chat_template_kwargs)
    eos_ids, strings = answer_ends(tokenizer, template, task.chat_template_kwargs)
    if not [*stop, *eos_ids, *strings]:
        why = "the tokenizer has no end-of-text token and the task no `stop`"
        raise SourceError(f"{key}: {why}, so no answer would end; give the task a `stop`")
    rows = _tokenized(plan, tokenizer, template, name, read)
    rows, fitted = fit(plan, key, rows)
    too_long = set(fitted["too_long"])
    beyond = read.total - len(read.prompts)
    keys = ("id", "document", "strata", "question", "row", "cluster")
    used = [prompt for prompt in read.prompts if prompt.id not in too_long]
    documents = ({key: getattr(prompt, key) for key in keys} for prompt in used)
    write_jsonl(building / PROMPTS, rows)
    write_jsonl(building / DOCUMENTS, documents)
    return {
        "task": task.model_dump(mode="json"),
        **recorded,
        "items": counted(read.total, len(rows), limit=beyond, too_long=len(too_long)),
        **fitted,
        "solved_examples": dict(read.replaced),
        "protocol": protocol.PREFILL_GENERATION,
        "chat_template": template,
        "end_strings": strings,
        **prompts_meta(plan, rows, eos_ids),
    }


def _read(plan: StagePlan, name: str) -> tuple[TaskPrompts, tuple[str, ...], dict[str, Any]]:
    """Return the prompts, the stop strings, and the record of their origin for meta.json."""
    task = plan.suite.generation_tasks[name]
    if isinstance(task, ProviderTask):
        prompts, recorded = provided_prompts(plan, name, task)
        return prompts, settled_task(task, recorded).stop, recorded
    splits, shots = locate_item(task, plan.config)
    state = state_of([*splits, *shots])
    prompts = read_task_prompts(name, task, splits, shots)
    documents = {prompt.id: prompt.document for prompt in prompts.prompts}
    check_golds(name, task, documents, limits=plan.config.verification, nltk_data=plan.nltk_data)
    checked = fingerprint(task.verifying)
    return prompts, task.stop, {"checked": checked, "source": describe([*splits, *shots], state)}


def _tokenized(
    plan: StagePlan, tokenizer: LoadedTokenizer, template: str | None, name: str, read: TaskPrompts
) -> list[dict[str, Any]]:
    """Return the lines of `prompts.jsonl`, whether there is room for their answers or not."""
    variables, most = plan.suite.generation_tasks[name].chat_template_kwargs, read.max_new_tokens
    texts, chats = [], []
    for prompt in read.prompts:
        if isinstance(prompt.turns, str):
            texts.append(prompt.turns)
        else:
            texts.append(render_chat(tokenizer, template or "", variables, prompt.id, prompt.turns))
            chats.append((prompt.turns, texts[-1]))
    warn_of_lost(f"generation_tasks.{name}", chats)
    return [
        {"id": prompt.id, "prompt": text, "max_new_tokens": most, "tokens": tokens}
        for prompt, text, tokens in zip(
            read.prompts, texts, encode_prompts(plan, tokenizer, texts), strict=True
        )
    ]

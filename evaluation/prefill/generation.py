"""Tier5 tasks: prompts as token ids in `prompts.jsonl`, documents for verifiers in `docs.jsonl`.

A plain prompt is the description, the solved examples and the question in this order. In a chat, the
description comes before the first question, and every solved example is two turns.

`fit` says which prompts have room for their answers; `meta.json` names the others.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import fingerprint, write_jsonl
from evaluation.prefill.caches import DOCUMENTS, PROMPTS
from evaluation.prefill.entries import counted
from evaluation.prefill.items import read_task, warn_of_equal
from evaluation.prefill.prompts import Chat, encode_prompts, fit
from evaluation.prefill.provided import provided_prompts
from evaluation.prefill.task_prompts import PromptRecipe, TaskPrompt
from evaluation.prefill.tiers import chat_template
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.settings import protocol
from evaluation.settings.generation import CompletionTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask, settled_task
from evaluation.verification.golds import check_golds


def prefill_task(
    plan: StagePlan, name: str, about: Mapping[str, Any], building: Path
) -> dict[str, Any]:
    """Write a task's files; return its part of meta.json."""
    task, key = plan.suite.generation_tasks[name], f"generation_tasks.{name}"
    tokenizer = stage_tokenizer(plan)
    template = chat_template(plan, task, about) if task.chat else None
    prompts, total, recorded, settled = _read(plan, name)
    chat = Chat(tokenizer, template, task.chat_template_kwargs, key)
    eos_ids, strings = chat.ends()
    if not [*settled.stop, *eos_ids, *strings]:
        why = "the tokenizer has no end-of-text token and the task no `stop`"
        raise SourceError(f"{key}: {why}, so no answer would end; give the task a `stop`")
    texts = [chat.text(prompt.id, prompt.turns) for prompt in prompts]
    chat.warn_of_lost()
    found = zip(prompts, texts, encode_prompts(plan, tokenizer, texts), strict=True)
    most = {"max_new_tokens": settled.max_new_tokens}
    rows = [{"id": one.id, "prompt": text, **most, "tokens": ids} for one, text, ids in found]
    rows, fitted = fit(plan, key, rows, eos_ids)
    too_long = set(fitted["too_long"])
    keys = ("id", "document", "strata", "question", "row", "cluster")
    used = [prompt for prompt in prompts if prompt.id not in too_long]
    write_jsonl(building / PROMPTS, rows)
    write_jsonl(building / DOCUMENTS, ({k: getattr(one, k) for k in keys} for one in used))
    left_out = {"limit": total - len(prompts), "too_long": len(too_long)}
    return {
        "task": task.model_dump(mode="json"),
        **recorded,
        "items": counted(total, len(rows), **left_out),
        **fitted,
        "protocol": protocol.PREFILL_GENERATION,
        "chat_template": template,
        "end_strings": strings,
    }


def _read(
    plan: StagePlan, name: str
) -> tuple[list[TaskPrompt], int, dict[str, Any], CompletionTask]:
    """Return the prompts, how many there are without the limit, their origin, and the completed task."""
    task = plan.suite.generation_tasks[name]
    if isinstance(task, ProviderTask):
        prompts, total, recorded = provided_prompts(plan, name, task)
        return prompts, total, recorded, settled_task(task, recorded)
    prompts, total, recorded = read_task(PromptRecipe(name, task), task, plan.config)
    if twice := [id for id, n in Counter(prompt.id for prompt in prompts).items() if n > 1]:
        raise SourceError(
            f"generation_tasks.{name}.id: {twice[0]!r} appears twice; write an id that is unique for each "
            "row, or leave `id` out"
        )
    documents = {prompt.id: prompt.document for prompt in prompts}
    if "gold" in task.document:
        warn_of_equal(f"generation_tasks.{name}", [one["gold"] for one in documents.values()])
    check_golds(name, task, documents, limits=plan.config.verification, nltk_data=plan.nltk_data)
    return prompts, total, {"checked": fingerprint(task.verifying), **recorded}, task

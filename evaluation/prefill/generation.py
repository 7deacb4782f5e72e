"""Tier5 tasks: prompts as token ids in `prompts.jsonl`, what verifiers read in `docs.jsonl`.

A prompt that leaves no room for `max_new_tokens` in the sequence length is left out and named in
`meta.json`: an answer that was cut off by the window would be judged wrong.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from evaluation import protocol
from evaluation.errors import SourceError
from evaluation.files import write_jsonl
from evaluation.fingerprints import fingerprint
from evaluation.prefill.caches import DOCUMENTS, PROMPTS, CheckGolds, check_cached_golds
from evaluation.prefill.definitions import asked_definition, chat_template, generation_definition
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.prompt_recipe import TaskPrompt, TaskPrompts, task_prompts
from evaluation.prefill.prompts import answer_ends, encode_prompts, prompts_meta, render_chat
from evaluation.prefill.provided import provided_prompts
from evaluation.prefill.sources import Sources, locate_item
from evaluation.prefill.tokenizer_cache import prefill_tokenizer
from evaluation.prefill.tokenizers import AnyTokenizer, lacking_tokens
from evaluation.settings.generation import GenerationTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask, judged_task


def prefill_generation_task(plan: StagePlan, name: str, check_golds: CheckGolds) -> None:
    """Write a task to `plan.generation_folder(name)`; if it is there, only check its golds.

    Args:
        plan: The stage.
        name: The task's key in the suite.
        check_golds: Takes name, task, and documents by id; raises SourceError for a wrong gold.
    Raises:
        SourceError: Data cannot be read, a gold is not right by its verifier, two prompts have one id,
            or none fits the window.
        ConfigError: A template does not parse.
    """
    task = plan.suite.generation_tasks[name]
    tokenizer, about = prefill_tokenizer(plan)
    template = chat_template(plan, about) if task.chat else None
    definition = generation_definition(plan, name, about)
    folder = plan.generation_folder(name)
    sources = Sources(plan, list(chain(*locate_item(task, plan.config.mirrors))))
    if is_current(folder, definition, sources.are_as):
        if isinstance(task, GenerationTask):
            check_cached_golds(folder, name, task, check_golds)
        return
    found, stop, recorded = _read(plan, name, sources, check_golds, tokenizer)
    eos_ids, strings = answer_ends(tokenizer, template)
    if not (stop or eos_ids or strings):
        raise SourceError(
            f"generation_tasks.{name}: the tokenizer has no end-of-text token and the task no `stop`, "
            "so every answer would run to `max_new_tokens`; give the task a `stop`"
        )
    rows, too_long = _tokenized(plan, tokenizer, template, name, found)
    meta = {
        "definition": definition,
        "asked_definition": asked_definition(plan, name, about),
        "task": task.model_dump(mode="json"),
        **recorded,
        "items": _counts(found, rows, too_long),
        "too_long": too_long,
        "protocol": protocol.PREFILL_GENERATION,
        **prompts_meta(plan, about, rows, template, eos_ids, {"end_strings": strings}),
    }
    fitting = [prompt for prompt in found.prompts if prompt.id not in set(too_long)]
    with new_entry(folder) as building:
        write_jsonl(building / PROMPTS, rows)
        write_jsonl(building / DOCUMENTS, map(_document, fitting))
        write_meta(building, meta, [PROMPTS, DOCUMENTS])


def _read(
    plan: StagePlan,
    name: str,
    sources: Sources,
    check_golds: CheckGolds,
    tokenizer: AnyTokenizer,
) -> tuple[TaskPrompts, tuple[str, ...], dict[str, Any]]:
    """Return the prompts, the stop strings that count, and what meta.json records of their origin."""
    task = plan.suite.generation_tasks[name]
    if isinstance(task, ProviderTask):
        found, info, reported = provided_prompts(plan, name, task)
        if lacking := lacking_tokens(tokenizer, info.special_tokens):
            raise SourceError(
                f"generation_tasks.{name}: the prompts of {task.task} are made with {', '.join(lacking)}, "
                f"which are no tokens of the tokenizer {plan.tokenizer.name}; take the task out, or evaluate "
                "a model that was trained to fill in code"
            )
        recorded = {"provider": reported, "source": sources.describe_provided(info)}
        return found, judged_task(task, recorded).stop, recorded
    found = task_prompts(name, task, sources.origins)
    check_golds(name, task, {prompt.id: prompt.document for prompt in found.prompts})
    checked = fingerprint(task.verifying())
    return found, task.stop, {"checked": checked, "source": sources.describe()}


def _counts(found: TaskPrompts, rows: Sequence[Any], too_long: Sequence[str]) -> dict[str, Any]:
    left_out = {"limit": found.total - len(found.prompts), "too_long": len(too_long)}
    return {
        "asked": found.total,
        "used": len(rows),
        "left_out": {reason: count for reason, count in left_out.items() if count},
    }


def _tokenized(
    plan: StagePlan,
    tokenizer: AnyTokenizer,
    template: str | None,
    name: str,
    found: TaskPrompts,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the lines of `prompts.jsonl`, and the ids of prompts that do not fit the window."""
    room = found.max_new_tokens
    texts = [_text(tokenizer, template, prompt) for prompt in found.prompts]
    encoded = encode_prompts(plan, tokenizer, texts)
    rows, too_long = [], []
    for prompt, text, tokens in zip(found.prompts, texts, encoded, strict=True):
        if len(tokens) + room > plan.sequence_length:
            too_long.append(prompt.id)
        else:
            rows.append({"id": prompt.id, "prompt": text, "max_new_tokens": room, "tokens": tokens})
    if not rows:
        raise SourceError(_none_fits(plan, name, room, min(map(len, encoded))))
    return rows, too_long


def _none_fits(plan: StagePlan, name: str, room: int, shortest: int) -> str:
    """Return the sentence on a task of which even the shortest prompt leaves no room for an answer."""
    left = plan.sequence_length - shortest
    remedies = [
        f"raise sequence_length to {shortest + room:,} or more",
        *([f"lower `max_new_tokens` to {left:,} or less"] if left > 0 else []),
        *(["lower `num_fewshot`"] if plan.suite.generation_tasks[name].num_fewshot else []),
        "take the task out",
    ]
    return (
        f"generation_tasks.{name}: no prompt leaves room for max_new_tokens {room:,} in sequence_length "
        f"{plan.sequence_length:,}, as the shortest has {shortest:,} tokens; {', or '.join(remedies)}"
    )


def _text(tokenizer: AnyTokenizer, template: str | None, prompt: TaskPrompt) -> str:
    if isinstance(prompt.turns, str):
        return prompt.turns
    return render_chat(tokenizer, template or "", prompt.id, prompt.turns, answer=True)


def _document(prompt: TaskPrompt) -> dict[str, Any]:
    return {"id": prompt.id, "document": dict(prompt.document), "strata": dict(prompt.strata)}

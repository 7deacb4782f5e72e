"""Tier5 tasks: prompts as token ids in `prompts.jsonl`, what verifiers read in `docs.jsonl`.

A prompt that leaves no room for `max_new_tokens` in the sequence length is left out and named in
`meta.json`: an answer that was cut off by the window would be judged wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation import protocol
from evaluation.errors import SourceError
from evaluation.files import fingerprint, write_jsonl
from evaluation.prefill.caches import (
    DOCUMENTS,
    PROMPTS,
)
from evaluation.prefill.conversations import chat_template, end_of_turn, render_chat
from evaluation.prefill.definitions import asked_definition, generation_definition
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.files import Row
from evaluation.prefill.generation.cache import CheckGolds, check_cached_golds
from evaluation.prefill.generation.provided import ProvidedPrompts, provided_prompts
from evaluation.prefill.generation.recipe import PromptRecipe, TaskPrompt
from evaluation.prefill.limits import OutOfTime, row_limits
from evaluation.prefill.questions import example_rows
from evaluation.prefill.sources import Origin, Sources, locate_generation
from evaluation.prefill.templates import reason_of
from evaluation.prefill.tokenizers import AnyTokenizer, bos_ids, describe, encode, prefill_tokenizer
from evaluation.settings.generation import GenerationTask
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask


def prefill_generation_task(plan: StagePlan, name: str, check_golds: CheckGolds) -> None:
    """Writes a task to `plan.generation_folder(name)`; if it is there, only its golds are looked at.

    Raises:
        SourceError: data cannot be read, a gold is not right by its verifier, two prompts have one id, or none fits the window.
        ConfigError: a template does not parse.
    """
    task = plan.suite.generation_tasks[name]
    tokenizer = prefill_tokenizer(plan)
    template = chat_template(tokenizer, plan) if task.chat else None
    about = describe(tokenizer, plan.tokenizer.name, plan.tokenizer.prepend_bos)
    definition = generation_definition(plan, name, template, about)
    folder = plan.generation_folder(name)
    origins = locate_generation(task, plan.config.mirrors)
    sources = Sources(plan, origins)
    if is_current(folder, definition, sources.are_as):
        if isinstance(task, GenerationTask):
            check_cached_golds(folder, name, task, check_golds)
        return
    given: _OwnPrompts | ProvidedPrompts
    judged: dict[str, Any]
    if isinstance(task, ProviderTask):
        given = provided_prompts(plan, name, task)
        judged = {"provider": given.recorded, "source": sources.describe_provided(given.info)}
    else:
        given = _own_prompts(name, task, origins)
        check_golds(name, task, {prompt.id: prompt.document for prompt in given.prompts})
        judged = {"checked": fingerprint(task.verifying()), "source": sources.describe()}
    _check_ends(name, tokenizer, template, judged.get("provider", {}).get("stop", task.stop))
    prompts, there = given.prompts, given.there
    rows, too_long = _tokenized(plan, tokenizer, template, name, given)
    fitting = [prompt for prompt in prompts if prompt.id not in set(too_long)]
    with new_entry(folder) as building:
        write_jsonl(building / PROMPTS, rows)
        write_jsonl(building / DOCUMENTS, [_document(prompt) for prompt in fitting])
        left_out = {"limit": there - len(prompts), "too_long": len(too_long)}
        meta = {
            "definition": definition,
            "asked_definition": asked_definition(plan, name, template, about),
            "task": task.model_dump(mode="json"),
            **judged,
            "items": {
                "asked": there,
                "used": len(rows),
                "left_out": {reason: count for reason, count in left_out.items() if count},
            },
            "too_long": too_long,
            **_meta(plan, tokenizer, template, rows, about),
        }
        write_meta(building, meta, [PROMPTS, DOCUMENTS])


@dataclass(frozen=True)
class _OwnPrompts:
    """Prompts in order, and how many there are without the limit."""

    prompts: list[TaskPrompt]
    there: int
    max_new_tokens: int


def _own_prompts(name: str, task: GenerationTask, origins: Sequence[Origin]) -> _OwnPrompts:
    recipe = PromptRecipe(name, task)
    rows, there = origins[0].first(task.limit)
    if not rows:
        raise SourceError(f"generation_tasks.{recipe.name}: {origins[0]} has no rows")
    shots = _shots(recipe, origins)
    prompts = [
        _limited(f"{origins[0]}: row {number}", partial(recipe.prompt, row, number, shots))
        for number, row in enumerate(rows)
    ]
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise SourceError(
                f"generation_tasks.{recipe.name}.id: {prompt.id!r} is there twice; write what is "
                "unique for each row, or leave `id` out"
            )
        seen.add(prompt.id)
    return _OwnPrompts(prompts, there, task.max_new_tokens)


def _shots(recipe: PromptRecipe, origins: Sequence[Origin]) -> list[tuple[str, str]]:
    task, chosen = recipe.task, list[tuple[int, Row]]()
    if task.fewshot_examples:
        chosen = list(enumerate(map(dict, task.fewshot_examples[: task.num_fewshot])))
    elif task.num_fewshot:
        chosen = example_rows(f"generation_tasks.{recipe.name}", task, origins[1])
    return [
        _limited(f"{recipe.name}: solved example {number}", partial(recipe.solved, row))
        for number, row in chosen
    ]


def _limited(place: str, make: Callable[[], Any]) -> Any:
    try:
        with row_limits():
            return make()
    except (SourceError, OutOfTime, MemoryError) as error:
        raise SourceError(f"{place}: {reason_of(error)}") from None


def _tokenized(
    plan: StagePlan,
    tokenizer: AnyTokenizer,
    template: str | None,
    name: str,
    given: _OwnPrompts | ProvidedPrompts,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines of `prompts.jsonl`, and the ids of those that do not fit the window."""
    prompts, room = given.prompts, given.max_new_tokens
    texts = [_text(tokenizer, template, prompt) for prompt in prompts]
    start = bos_ids(tokenizer, plan.tokenizer.prepend_bos)
    rows, too_long = [], []
    for prompt, text, ids in zip(prompts, texts, encode(tokenizer, texts), strict=True):
        tokens = ids if ids[: len(start)] == start else start + ids  # templates may write BOS
        if len(tokens) + room > plan.sequence_length:
            too_long.append(prompt.id)
        else:
            rows.append({"id": prompt.id, "prompt": text, "max_new_tokens": room, "tokens": tokens})
    if not rows:
        raise SourceError(
            f"generation_tasks.{name}: no prompt leaves room for max_new_tokens {room} in "
            f"sequence_length {plan.sequence_length}; lower `max_new_tokens` or `num_fewshot`"
        )
    return rows, too_long


def _text(tokenizer: AnyTokenizer, template: str | None, prompt: TaskPrompt) -> str:
    if isinstance(prompt.turns, str):
        return prompt.turns
    return render_chat(tokenizer, template or "", prompt.id, prompt.turns, answer=True)


def _document(prompt: TaskPrompt) -> dict[str, Any]:
    return {"id": prompt.id, "document": dict(prompt.document), "strata": dict(prompt.strata)}


def _ends(tokenizer: AnyTokenizer, template: str | None) -> tuple[list[int], list[str]]:
    """Tokens and texts that end an answer whatever the task says."""
    ids, strings = ([], []) if template is None else end_of_turn(tokenizer, template)
    eos = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    return sorted({*eos, *ids}), list(strings)


def _check_ends(
    name: str, tokenizer: AnyTokenizer, template: str | None, stop: Sequence[str]
) -> None:
    if not stop and not any(_ends(tokenizer, template)):
        raise SourceError(
            f"generation_tasks.{name}: the tokenizer has no end-of-text token and the task no `stop`, "
            "so every answer would run to `max_new_tokens`; give the task a `stop`"
        )


def _meta(
    plan: StagePlan,
    tokenizer: AnyTokenizer,
    template: str | None,
    rows: Sequence[Mapping[str, Any]],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    eos_ids, strings = _ends(tokenizer, template)
    return {
        "protocol": protocol.PREFILL_GENERATION,
        "max_tokens": max(len(row["tokens"]) + row["max_new_tokens"] for row in rows),
        "vocab_size_needed": 1 + max([*eos_ids, *(max(row["tokens"]) for row in rows)]),
        "chat_template": template,
        "end_strings": strings,
        "eos_token_ids": eos_ids,
        "sequence_length": plan.sequence_length,
        "tokenizer": dict(about),
    }

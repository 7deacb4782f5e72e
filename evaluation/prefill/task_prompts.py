"""Tier5 tasks: turn rows of a dataset into prompts, and documents for verifiers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import DatasetRow
from evaluation.prefill.questions import TaskPrompt, TaskPrompts
from evaluation.prefill.row_identity import question_identity, row_identity
from evaluation.prefill.solved_examples import (
    NumberedRow,
    Replaced,
    SolvedExample,
    SolvedExamples,
    drawn_anew,
    example_rows,
)
from evaluation.prefill.sources import ResolvedSplit
from evaluation.prefill.templates import RowTemplates, at_row
from evaluation.settings.generation import GenerationTask
from evaluation.settings.suites import Message

Shot = tuple[str, str]
"""A solved example: a question and its answer."""

_TEXTS = ("id", "prompt", "system", "answer", "description", "cluster", "fewshot_same")
_OF_EXAMPLES = ("answer", "fewshot_same")


class PromptRecipe:
    """A task's templates, compiled once; raises ConfigError for one that does not parse."""

    def __init__(self, name: str, task: GenerationTask) -> None:
        self.task, self.key, self._name = task, f"generation_tasks.{name}", name
        texts = {part: getattr(task, part) for part in _TEXTS}
        texts |= {f"strata.{name}": source for name, source in task.strata.items()}
        document = {f"document.{name}": source for name, source in task.document.items()}
        self._templates = RowTemplates(self.key, task.let, texts, document)

    def prompt(self, row: DatasetRow, number: int, shots: Sequence[Shot]) -> TaskPrompt:
        """Return a row's prompt: turns of a chat, or one text, with the document for verifiers.

        The row's number is part of its id where the task has no template for ids.

        Raises:
            SourceError: A template fails or writes nothing, or JSON has no form for the document.
        """
        values, templates = self._templates.values(row), self._templates
        texts = {
            n: str(templates.text(n, values)) for n in templates.texts if n not in _OF_EXAMPLES
        }
        if not texts["prompt"].strip():
            raise SourceError(f"{self.key}.prompt writes nothing for this row")
        expressions = templates.expressions
        document = {name: expressions[f"document.{name}"](values) for name in self.task.document}
        _check_json(f"{self.key}.document", document)
        strata = {name: texts[f"strata.{name}"] for name in self.task.strata}
        id = texts.get("id") or f"{self._name}/{number}"
        question = question_identity([texts["prompt"]])
        turns = self._turns(texts, shots)
        cluster = texts.get("cluster")
        return TaskPrompt(id, turns, document, strata, question, row_identity(row), cluster)

    def identities(self, row: DatasetRow) -> frozenset[str]:
        """Return by what a row is recognised among solved examples."""
        question = str(self._templates.text("prompt", self._templates.values(row)))
        return frozenset((row_identity(row), question_identity([question])))

    def solved(self, row: DatasetRow) -> SolvedExample[Shot]:
        """Return a row as a solved example."""
        values, text = self._templates.values(row), self._templates.text
        shown = str(text("prompt", values)), str(text("answer", values))
        return SolvedExample(self.identities(row), shown, self.shared(row))

    def shared(self, row: DatasetRow) -> str:
        """Return what a row has in common with its solved examples; "" where all rows may be examples."""
        return str(self._templates.text("fewshot_same", self._templates.values(row)) or "")

    def _turns(self, texts: Mapping[str, str], shots: Sequence[Shot]) -> tuple[Message, ...] | str:
        questions = [question for question, _ in shots] + [texts["prompt"]]
        questions[0] = texts.get("description", "") + questions[0]
        answers = [answer for _, answer in shots]
        if not self.task.chat:
            solved = [
                question + answer for question, answer in zip(questions, answers, strict=False)
            ]
            return self.task.between.join([*solved, questions[-1]])
        turns = [Message(role="system", content=texts["system"])] if "system" in texts else []
        for question, answer in zip(questions, answers, strict=False):
            turns.append(Message(role="user", content=question))
            turns.append(Message(role="assistant", content=answer))
        return (*turns, Message(role="user", content=questions[-1]))


def _check_json(key: str, document: Mapping[str, Any]) -> None:
    try:
        json.dumps(document, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SourceError(
            f"{key}: not what JSON can hold ({error}); write numbers, texts and lists"
        ) from None


def read_task_prompts(
    name: str, task: GenerationTask, origins: Sequence[ResolvedSplit]
) -> TaskPrompts:
    """Return the prompts of a task's rows.

    Args:
        origins: The split of the rows, and that of the solved examples if a split has them.

    Raises:
        SourceError: There are no rows, a template fails, or two prompts have one id.
        ConfigError: A template does not parse.
    """
    recipe = PromptRecipe(name, task)
    rows, total = origins[0].first(task.limit)
    if not rows:
        raise SourceError(f"{recipe.key}: {origins[0]} has no rows")
    examples = _solved_examples(recipe, name, origins)
    prompts: dict[str, TaskPrompt] = {}
    for number, row in enumerate(rows):
        place = f"{origins[0]}: row {number}"
        shots = _shots(recipe, examples, row, place)
        with at_row(place):
            prompt = recipe.prompt(row, number, shots)
        if prompt.id in prompts:
            raise SourceError(
                f"{recipe.key}.id: {prompt.id!r} appears twice; write an id that is unique for each row, or "
                "leave `id` out"
            )
        prompts[prompt.id] = prompt
    replaced = Replaced(examples.replaced, examples.fewer)
    replaced.log(recipe.key, len(prompts))
    return TaskPrompts(list(prompts.values()), total, task.max_new_tokens, replaced)


def _shots(
    recipe: PromptRecipe, examples: SolvedExamples[Shot], row: DatasetRow, place: str
) -> list[Shot]:
    if not recipe.task.num_fewshot:
        return []
    with at_row(place):
        identities, shared = recipe.identities(row), recipe.shared(row)
    return examples.before(identities, shared)


def _solved_examples(
    recipe: PromptRecipe, name: str, origins: Sequence[ResolvedSplit]
) -> SolvedExamples[Shot]:
    task, rows, orders = recipe.task, iter(list[NumberedRow]()), None
    if task.fewshot_examples:
        rows = iter(enumerate(map(dict, task.fewshot_examples)))
    elif task.num_fewshot:
        rows = example_rows(recipe.key, task, origins[1])
    if task.fewshot_anew and task.fewshot_seed is not None:
        pool = list(rows)
        rows, orders = iter(pool), drawn_anew(task.fewshot_seed, len(pool), task.num_fewshot)
    return SolvedExamples(f"{name}: solved examples", rows, task.num_fewshot, recipe.solved, orders)

"""Tier5 tasks: rows of a dataset as prompts, and as documents that verifiers read.

Plain prompts are the description, the solved examples and the question under each other. In a chat
the description stands before the first question, and every solved example is two turns.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import Row
from evaluation.prefill.limits import limited_row
from evaluation.prefill.questions import example_rows
from evaluation.prefill.sources import Origin
from evaluation.prefill.templates import RowTemplates
from evaluation.settings.generation import GenerationTask
from evaluation.settings.suites import Message


@dataclass(frozen=True)
class TaskPrompt:
    """A row as turns of a chat, or as one text; and what verifiers read of it."""

    id: str
    turns: tuple[Message, ...] | str
    document: Mapping[str, Any]
    strata: Mapping[str, str]


@dataclass(frozen=True)
class TaskPrompts:
    """A task's prompts in order, and how many there are without the limit."""

    prompts: list[TaskPrompt]
    total: int
    max_new_tokens: int


_TEXTS = ("id", "prompt", "system", "answer", "description")


class PromptRecipe:
    """A task's templates, compiled once; raises ConfigError for one that does not parse.

    Args:
        name: The task's key in the suite.
        task: The task.
    """

    def __init__(self, name: str, task: GenerationTask) -> None:
        self.task, self.key, self._name = task, f"generation_tasks.{name}", name
        texts = {part: getattr(task, part) for part in _TEXTS}
        texts |= {f"strata.{name}": source for name, source in task.strata.items()}
        document = {f"document.{name}": source for name, source in task.document.items()}
        self._templates = RowTemplates(self.key, task.let, texts, document)

    def prompt(self, row: Row, number: int, shots: Sequence[tuple[str, str]]) -> TaskPrompt:
        """Return a row's prompt.

        Args:
            row: A row of the dataset.
            number: The row's number, which is part of its id where the task has no template for it.
            shots: Solved examples: questions and answers.

        Returns:
            Turns of a chat, or one text, with the document for verifiers.

        Raises:
            SourceError: A template fails or writes nothing, or JSON has no form for the document.
        """
        values, templates = self._templates.values(row), self._templates
        texts = {n: str(templates.text(n, values)) for n in templates.texts if n != "answer"}
        if not texts["prompt"].strip():
            raise SourceError(f"{self.key}.prompt writes nothing for this row")
        expressions = templates.expressions
        document = {name: expressions[f"document.{name}"](values) for name in self.task.document}
        _check_json(f"{self.key}.document", document)
        strata = {name: texts[f"strata.{name}"] for name in self.task.strata}
        id = texts.get("id") or f"{self._name}/{number}"
        return TaskPrompt(id, self._turns(texts, shots), document, strata)

    def solved(self, row: Row) -> tuple[str, str]:
        """Return a row as a solved example.

        Args:
            row: A row of the dataset.

        Returns:
            The question and its answer.
        """
        values, text = self._templates.values(row), self._templates.text
        return str(text("prompt", values)), str(text("answer", values))

    def _turns(
        self, texts: Mapping[str, str], shots: Sequence[tuple[str, str]]
    ) -> tuple[Message, ...] | str:
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


def task_prompts(name: str, task: GenerationTask, origins: Sequence[Origin]) -> TaskPrompts:
    """Return the prompts of a task's rows.

    Args:
        name: The task's key in the suite.
        task: The task.
        origins: Where its rows are, then where its solved examples are, if a split has them.

    Returns:
        Prompts in the order of the dataset, and how many there are without the limit.

    Raises:
        SourceError: Rows cannot be prompts, or two have one id.
    """
    recipe = PromptRecipe(name, task)
    rows, total = origins[0].first(task.limit)
    if not rows:
        raise SourceError(f"{recipe.key}: {origins[0]} has no rows")
    shots = _shots(recipe, name, origins)
    prompts: dict[str, TaskPrompt] = {}
    for number, row in enumerate(rows):
        with limited_row(f"{origins[0]}: row {number}"):
            prompt = recipe.prompt(row, number, shots)
        if prompt.id in prompts:
            raise SourceError(
                f"{recipe.key}.id: {prompt.id!r} is there twice; write what is unique for each row, or "
                "leave `id` out"
            )
        prompts[prompt.id] = prompt
    return TaskPrompts(list(prompts.values()), total, task.max_new_tokens)


def _shots(recipe: PromptRecipe, name: str, origins: Sequence[Origin]) -> list[tuple[str, str]]:
    task, chosen = recipe.task, list[tuple[int, Row]]()
    if task.fewshot_examples:
        chosen = list(enumerate(map(dict, task.fewshot_examples[: task.num_fewshot])))
    elif task.num_fewshot:
        chosen = example_rows(recipe.key, task, origins[1])
    shots = []
    for number, row in chosen:
        with limited_row(f"{name}: solved example {number}"):
            shots.append(recipe.solved(row))
    return shots

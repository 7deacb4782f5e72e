"""A generation task's templates: rows of a dataset as prompts and documents.

Plain prompts are the description, the solved examples and the question under each other. In a chat
the description stands before the first question, and every solved example is two turns.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import Row, check_not_binary, check_unicode
from evaluation.prefill.templates import (
    Render,
    compile_expression,
    compile_template,
    expression_fields,
    fields_of,
)
from evaluation.settings.generation import GenerationTask
from evaluation.settings.probes import Message


@dataclass(frozen=True)
class TaskPrompt:
    """A row as turns of a chat, or as one text; and what verifiers read of it."""

    id: str
    turns: tuple[Message, ...] | str
    document: Mapping[str, Any]
    strata: Mapping[str, str]


class PromptRecipe:
    """A task's templates, compiled once; raises ConfigError for one that does not parse."""

    def __init__(self, name: str, task: GenerationTask) -> None:
        self.name, self.task = name, task
        self._let = self._all("let", task.let, compile_expression)
        self._document = self._all("document", task.document, compile_expression)
        self._strata = self._all("strata", task.strata, compile_template)
        texts = {
            key: source
            for key in ("id", "prompt", "system", "answer", "description")
            if (source := getattr(task, key)) is not None
        }
        self._texts = self._all("", texts, compile_template)
        self._fields = fields_of(*texts.values(), *task.strata.values()) | expression_fields(
            *task.let.values(), *task.document.values()
        )

    def _all(self, key: str, sources: Mapping[str, str], compiled: Any) -> dict[str, Render]:
        place = ".".join(filter(None, ("generation_tasks", self.name, key)))
        return {name: compiled(f"{place}.{name}", source) for name, source in sources.items()}

    def prompt(self, row: Row, number: int, shots: Sequence[tuple[str, str]]) -> TaskPrompt:
        """Raises SourceError for a row that a template fails on, or a document that is no JSON."""
        values = self._values(row)
        texts = {key: str(render(values)) for key, render in self._texts.items() if key != "answer"}
        if not texts["prompt"].strip():
            raise SourceError(f"generation_tasks.{self.name}.prompt writes nothing for this row")
        document = {key: evaluate(values) for key, evaluate in self._document.items()}
        _check_json(f"generation_tasks.{self.name}.document", document)
        strata = {key: str(render(values)) for key, render in self._strata.items()}
        for text in (*texts.values(), *strata.values()):
            check_unicode(text)
        name = texts.get("id") or f"{self.name}/{number}"
        return TaskPrompt(name, self._turns(texts, shots), document, strata)

    def solved(self, row: Row) -> tuple[str, str]:
        """A row as a solved example: the question and its answer."""
        values = self._values(row)
        question, answer = (str(self._texts[key](values)) for key in ("prompt", "answer"))
        for text in (question, answer):
            check_unicode(text)
        return question, answer

    def _values(self, row: Row) -> dict[str, Any]:
        values = dict(row)
        check_not_binary({name: values[name] for name in self._fields & values.keys()})
        for variable, expression in self._let.items():
            values[variable] = expression(values)
        return values

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

"""Tier5 tasks: turn rows of a dataset into prompts, and documents for verifiers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.items import RowRecipe, question_identity, row_identity
from evaluation.prefill.sources import DatasetRow
from evaluation.settings.generation import GenerationTask
from evaluation.settings.suites import Message

_TEXTS = ("id", "prompt", "system", "answer", "description", "cluster", "fewshot_same")
_OF_EXAMPLES = ("answer", "fewshot_same")


@dataclass(frozen=True)
class TaskPrompt:
    """A row as turns of a chat, or as one text; and its document, which verifiers read.

    `question` and `row` are its identities (`items`).
    """

    id: str
    turns: tuple[Message, ...] | str
    document: Mapping[str, Any]
    strata: Mapping[str, str]
    question: str = ""
    row: str | None = None
    cluster: str | None = None


class PromptRecipe(RowRecipe):
    """The templates of a task whose answers are generated."""

    def __init__(self, name: str, task: GenerationTask) -> None:
        self.task = task
        texts = {part: getattr(task, part) for part in _TEXTS}
        texts |= {f"strata.{name}": source for name, source in task.strata.items()}
        document = {f"document.{name}": source for name, source in task.document.items()}
        super().__init__(f"generation_tasks.{name}", task, texts, document)

    def item(self, row: DatasetRow, id: str, examples: Sequence[tuple[str, str]]) -> TaskPrompt:
        """Return a row's prompt: turns of a chat, or one text, with the document for verifiers."""
        values, templates = self.templates.values(row), self.templates
        texts = {n: str(self.text(n, values)) for n in templates.texts if n not in _OF_EXAMPLES}
        if not texts["prompt"].strip():
            raise SourceError(f"{self.key}.prompt writes nothing for this row")
        read = templates.expressions
        document = {name: read[f"document.{name}"](values) for name in self.task.document}
        for name in {name for verifier in self.task.verifiers.values() for name in verifier.NEEDS}:
            parts = document[name] if isinstance(document[name], list | tuple) else [document[name]]
            if not any(
                part.strip() if isinstance(part, str) else part is not None for part in parts
            ):
                raise SourceError(f"{self.key}.document.{name} is empty; correct it, or the data")
        try:
            json.dumps(document, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise SourceError(f"{self.key}.document: not what JSON can hold ({error})") from None
        return TaskPrompt(
            id=texts.get("id") or id,
            turns=self._turns(texts, examples),
            document=document,
            strata=self.groups(values),
            question=question_identity([texts["prompt"]]),
            row=row_identity(row),
            cluster=texts.get("cluster"),
        )

    def asked(self, values: Mapping[str, Any]) -> list[str]:
        """Return a row's question."""
        return [str(self.text("prompt", values))]

    def solved(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """Return a row's question and its answer."""
        return str(self.text("prompt", values)), str(self.text("answer", values))

    def groups(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return a row's fixed groups."""
        return {name: str(self.text(f"strata.{name}", values)) for name in self.task.strata}

    def _turns(
        self, texts: Mapping[str, str], shots: Sequence[tuple[str, str]]
    ) -> tuple[Message, ...] | str:
        questions = [question for question, _ in shots] + [texts["prompt"]]
        questions[0] = texts.get("description", "") + questions[0]
        solved = list(zip(questions, (answer for _, answer in shots), strict=False))
        if not self.task.chat:
            examples = [question + answer for question, answer in solved]
            return self.task.between.join([*examples, questions[-1]])
        turns = [Message(role="system", content=texts["system"])] if "system" in texts else []
        for question, answer in solved:
            turns.append(Message(role="user", content=question))
            turns.append(Message(role="assistant", content=answer))
        return (*turns, Message(role="user", content=questions[-1]))

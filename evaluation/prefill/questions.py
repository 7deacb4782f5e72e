"""Tier3 tasks: turn rows of a benchmark into contexts and candidate continuations.

An item's context is the task's description, its solved examples and the question. They are joined as
in lm-evaluation-harness: `description` unchanged, the rest with blank lines between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.items import RowRecipe, question_identity, row_identity
from evaluation.prefill.sources import DatasetRow
from evaluation.prefill.templates import reads_row
from evaluation.settings.sources import Task

_BETWEEN = "\n\n"


@dataclass(frozen=True)
class Question:
    """An item as text: a context and continuation for each candidate, and others for `pmi`."""

    id: str
    cluster: str | None
    stratum: str | None
    gold: int
    pairs: tuple[tuple[str, str], ...]
    unconditional: tuple[tuple[str, str], ...] | None
    counts_space: bool = False
    """Whether lengths of candidates count the space that they begin with."""
    question: str = ""
    row: str | None = None
    """Identities of the question as rendered, and of the row; see `items`."""

    @property
    def scored_pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs in the order in which they are tokenized."""
        return self.pairs + (self.unconditional or ())


_TEXTS = ("context", "continuation", "description", "cluster", "stratum", "unconditional_context")


class Recipe(RowRecipe):
    """The templates of a task of ranked choices, or of right answers alone."""

    def __init__(self, name: str, task: Task) -> None:
        texts = {part: getattr(task, part) for part in _TEXTS}
        super().__init__(f"tasks.{name}", task, texts, {"choices": task.choices, "gold": task.gold})
        self._is_ranked = task.choices is not None
        self._asks = reads_row(task.context)

    def item(self, row: DatasetRow, id: str, examples: Sequence[str]) -> Question:
        """Return the question of a row; `examples` are solved ones, which stand before it."""
        values, text = self.templates.values(row), self.text
        choices, gold = self._candidates(values)
        before = f"{text('description', values)}{''.join(f'{e}{_BETWEEN}' for e in examples)}"
        pairs, unconditional, contexts = [], [], []
        for index, choice in enumerate(choices):
            shown = values | choice
            contexts.append(str(text("context", shown)))
            continuation = str(text("continuation", shown))
            if not continuation.strip():
                what = f"candidate {index}" if self._is_ranked else "the answer"
                keys = f"`choices` or `continuation` of {self.key}"
                raise SourceError(f"{what} is empty; correct {keys}, or the data")
            pairs.append((f"{before}{contexts[-1]}", continuation))
            if (alone := text("unconditional_context", shown)) is not None:
                unconditional.append((alone, continuation))
        cluster, stratum = text("cluster", values), text("stratum", values)
        twins = tuple(unconditional) or None
        candidates = [pair[1] for pair in pairs] if self._is_ranked or not self._asks else ()
        return Question(
            *(id, cluster, stratum, gold, tuple(pairs), twins),
            counts_space=not self._is_ranked,
            question=question_identity(contexts, candidates),
            row=row_identity(row),
        )

    def asked(self, values: Mapping[str, Any]) -> list[str]:
        """Return a row's contexts; where no field is in them, the candidates are the question.

        Other wrong candidates do not make another question.
        """
        name = "context" if self._asks else "continuation"
        return [
            str(self.text(name, {**values, **choice})) for choice in self._candidates(values)[0]
        ]

    def solved(self, values: Mapping[str, Any]) -> str:
        """Return context and right continuation as one text."""
        choices, gold = self._candidates(values)
        shown = {**values, **choices[gold]}
        return f"{self.text('context', shown)}{self.text('continuation', shown)}"

    def groups(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the index of a row's right answer, and its fixed group."""
        gold = self._candidates(values)[1] if self._is_ranked else None
        return {"label": gold, "stratum": self.text("stratum", values)}

    def _candidates(self, values: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
        """Return each candidate's variables for templates, and the index of the right one."""
        if not self._is_ranked:
            return [{}], 0
        choices, gold = self.templates.expressions["choices"](values), None
        if not isinstance(choices, list | tuple) or len(choices) < 2:
            raise SourceError(
                f"{self.key}.choices gives {choices!r:.200}, not a list of two or more; "
                "correct the expression"
            )
        what = f"for {len(choices)} candidates"
        try:
            gold = self.templates.expressions["gold"](values)
        except SourceError as error:
            if "is not in list" not in str(error):  # `list.index` of a label that is not there
                raise
            what = str(error)
        if type(gold) is not int or not 0 <= gold < len(choices):
            raise SourceError(
                f"no usable label (`gold` gives {gold!r:.200} {what}): the labels of this split are hidden, "
                f"or {self.key}.gold reads the wrong field; use a split with labels"
            )
        return [{"choice": choice, "index": n} for n, choice in enumerate(choices)], gold

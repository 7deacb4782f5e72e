"""Solved examples that stand before questions, none of which is the question itself.

A split's name says little about its rows: two splits may be one file, and a row may be in both. So
an example that is the question, by `row_identity`, is replaced by the next one, and counted.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import DatasetRow
from evaluation.prefill.templates import at_row
from evaluation.settings.generation import GenerationTask
from evaluation.settings.sources import Task


@dataclass(frozen=True)
class SolvedExample:
    """An example as a prompt shows it, the identities of its question, and what it shares with questions."""

    identities: frozenset[str]
    shown: Any
    shared: str = ""


class SolvedExamples:
    """The examples of a task: the first rows that are not the question, by the seed if it has one.

    Args:
        recipe: The task's templates: its `key`, and `solved`, which makes an example of a row.
        rows: The rows that may become examples.
        counts: Counts `questions` that were an example themselves, and `fewer`, those without another.
    """

    def __init__(
        self,
        recipe: Any,
        task: Task | GenerationTask,
        rows: Iterable[DatasetRow],
        counts: Counter[str],
    ) -> None:
        self._recipe, self._number, self._counts = recipe, task.num_fewshot, counts
        self._rows, seed = list(rows), task.fewshot_seed
        self._draw = random.Random(seed) if getattr(task, "fewshot_anew", False) else None
        self._order = list(range(len(self._rows)))
        if seed is not None and self._draw is None:
            random.Random(seed).shuffle(self._order)
        if len(self._rows) < self._number:
            raise SourceError(
                f"{recipe.key}: the split has {len(self._rows)} examples, not {self._number}; lower "
                "`num_fewshot`, or choose another `fewshot_split`"
            )

        @cache
        def solved(place: int) -> SolvedExample:
            with at_row(f"{recipe.key}: solved example {place}"):
                found: SolvedExample = recipe.solved(self._rows[place])
            return found

        self._solved = solved

    def before(self, row: DatasetRow) -> list[Any]:
        """Return the examples of a row's question.

        There is one fewer than configured if one was the question itself, and no other is left.
        """
        if not self._number:
            return []
        identities, shared = self._recipe.identities(row), self._recipe.shared(row)
        chosen: list[Any] = []
        is_among = False
        fitting = (
            example for example in map(self._solved, self._places()) if example.shared == shared
        )
        while len(chosen) < self._number and (example := next(fitting, None)) is not None:
            if example.identities & identities:
                is_among = True
            else:
                chosen.append(example.shown)
        if shared and len(chosen) + is_among < self._number:
            raise SourceError(
                f"{self._recipe.key}: only {len(chosen)} examples share {shared!r} with their question, not "
                f"{self._number}; lower `num_fewshot`, or change `fewshot_same`"
            )
        self._counts["questions"] += is_among
        self._counts["fewer"] += is_among and len(chosen) < self._number
        return chosen

    def _places(self) -> Iterator[int]:
        """Yield places of rows in the order in which they are taken: those drawn first, then the others."""
        if self._draw is None:
            return iter(self._order)
        drawn = self._draw.sample(self._order, self._number)
        return chain(drawn, (place for place in self._order if place not in drawn))

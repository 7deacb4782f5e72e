"""Solved examples that stand before questions, none of which is the question itself.

A split's name says little about its rows: two splits may be one file, and a row may be in both. So
an example that is the question, by `row_identity`, is replaced by the next one, and counted.
"""

import logging
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice, repeat
from typing import Generic, TypeVar

from evaluation.errors import ConfigError, SourceError
from evaluation.prefill.files import DatasetRow
from evaluation.prefill.sources import ResolvedSplit
from evaluation.prefill.templates import at_row
from evaluation.settings.generation import GenerationTask
from evaluation.settings.model import LARGEST_COUNT
from evaluation.settings.sources import Task

log = logging.getLogger(__name__)

Shown = TypeVar("Shown")

NumberedRow = tuple[int, DatasetRow]


@dataclass(frozen=True)
class SolvedExample(Generic[Shown]):
    """An example as a prompt shows it, with the identities of its question."""

    identities: frozenset[str]
    shown: Shown
    shared: str = ""
    """What it has in common with the questions that it stands before."""


class SolvedExamples(Generic[Shown]):
    """The examples of a task: the first rows that are not the question; counts those that were.

    Args:
        rows: Rows with their numbers in the split, in the order in which they are taken.
        orders: For each question in turn, places of rows in the order in which they are taken;
            None: all are taken in the order of `rows`.
    """

    def __init__(
        self,
        place: str,
        rows: Iterator[NumberedRow],
        number: int,
        solve: Callable[[DatasetRow], SolvedExample[Shown]],
        orders: Iterator[Iterable[int]] | None = None,
    ) -> None:
        self._place, self._rows, self._number, self._solve = place, rows, number, solve
        self._orders = repeat(None) if orders is None else orders
        self._read: list[NumberedRow] = []
        self._solved: dict[int, SolvedExample[Shown]] = {}
        self.replaced = 0
        """Questions for which an example was the question itself."""
        self.fewer = 0
        """Those among them for which there was no other example."""

    def before(self, identities: frozenset[str], shared: str = "") -> list[Shown]:
        """Return the examples of a question that have `shared` in common with it.

        There is one fewer than configured if one was the question itself.

        Raises:
            SourceError: There are too few such examples.
        """
        chosen: list[Shown] = []
        examples = self._examples()
        skipped = False
        while len(chosen) < self._number and (example := next(examples, None)) is not None:
            if example.shared != shared:
                continue
            if example.identities & identities:
                skipped = True
            else:
                chosen.append(example.shown)
        if shared and len(chosen) + skipped < self._number:
            raise SourceError(
                f"{self._place}: only {len(chosen)} share {shared!r} with their question, not "
                f"{self._number}; lower `num_fewshot`, or change `fewshot_same`"
            )
        self.replaced += skipped
        self.fewer += skipped and len(chosen) < self._number
        return chosen

    def _examples(self) -> Iterator[SolvedExample[Shown]]:
        for place in next(self._orders) or count():
            self._read += islice(self._rows, max(0, place + 1 - len(self._read)))
            if place >= len(self._read):
                return
            if place not in self._solved:
                number, row = self._read[place]
                with at_row(f"{self._place}: row {number}"):
                    self._solved[place] = self._solve(row)
            yield self._solved[place]


def drawn_anew(seed: int, rows: int, number: int) -> Iterator[Iterator[int]]:
    """Yield for each question the places of `number` examples, drawn as lm-evaluation-harness does.

    All other places follow in order, in case that one of the drawn is the question.
    """
    generator = random.Random(seed)
    while True:
        drawn = generator.sample(range(rows), number)
        yield chain(drawn, (place for place in range(rows) if place not in drawn))


@dataclass(frozen=True)
class Replaced:
    """How many questions were among their own solved examples, and for how many none was left."""

    questions: int = 0
    fewer: int = 0

    def __add__(self, other: "Replaced") -> "Replaced":
        return Replaced(self.questions + other.questions, self.fewer + other.fewer)

    def log(self, key: str, asked: int) -> None:
        """Say which examples of the task `key` were replaced, if any were."""
        if self.questions:
            left = f"; {self.fewer} of them have one example less" if self.fewer else ""
            log.warning(
                "%s: %d of %d questions are themselves among the rows of solved examples; each gets the "
                "next row in place of itself%s",
                *(key, self.questions, asked, left),
            )


def example_rows(
    key: str, task: Task | GenerationTask, origin: ResolvedSplit
) -> Iterator[NumberedRow]:
    """Return the rows, with their numbers, that may become solved examples, in order.

    They are drawn by the task's seed if all questions have the same examples.

    Raises:
        ConfigError: The split is that of the questions.
        SourceError: It has too few rows.
    """
    if origin.split == task.split and task.dataset is not None:
        raise ConfigError(
            f"{key}.fewshot_split: examples from {task.split!r} would be among the questions; name "
            "another split"
        )
    rows: Iterator[NumberedRow] = enumerate(origin.rows())
    if task.fewshot_seed is not None and not getattr(task, "fewshot_anew", False):
        drawn = list(enumerate(origin.first(LARGEST_COUNT)[0]))
        random.Random(task.fewshot_seed).shuffle(drawn)
        rows = iter(drawn)
    first = list(islice(rows, task.num_fewshot))
    if len(first) < task.num_fewshot:
        raise SourceError(
            f"{key}: {origin} has {len(first)} examples, not {task.num_fewshot}; lower "
            "`num_fewshot`, or choose another `fewshot_split`"
        )
    return chain(first, rows)

"""Solved examples that stand before questions, none of which is the question itself.

A split's name says little about its rows: two splits may be one file, and a row may be in both. So
an example that is the question, by `row_identity`, is replaced by the next one, and counted.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Generic, TypeVar

from evaluation.errors import ConfigError, SourceError
from evaluation.prefill.files import DatasetRow
from evaluation.prefill.sources import ResolvedSplit
from evaluation.prefill.templates import at_row
from evaluation.settings.generation import GenerationTask
from evaluation.settings.sources import Task

log = logging.getLogger(__name__)

Shown = TypeVar("Shown")


@dataclass(frozen=True)
class SolvedExample(Generic[Shown]):
    """An example as a prompt shows it, the identities of its question, and what it shares with questions."""

    identities: frozenset[str]
    shown: Shown
    shared: str = ""


class SolvedExamples(Generic[Shown]):
    """The examples of a task: the first rows that are not the question.

    Args:
        place: What messages call the split.
        rows: Rows in the order in which they are taken, with their numbers in the split.
        solve: Makes an example of a row.
        counts: Counts `questions` that were an example themselves, and `fewer`, those without another.
        anew: Seed by which they are drawn for each question, as lm-evaluation-harness does; or None.
    """

    def __init__(
        self,
        place: str,
        rows: Iterable[tuple[int, DatasetRow]],
        number: int,
        solve: Callable[[DatasetRow], SolvedExample[Shown]],
        counts: Counter[str],
        anew: int | None = None,
    ) -> None:
        self._place, self._number, self._solve, self._counts = place, number, solve, counts
        self._draw = None if anew is None else random.Random(anew)
        self._read = [] if self._draw is None else list(rows)
        self._rows = iter(rows)
        self._solved: dict[int, SolvedExample[Shown]] = {}

    def before(self, identities: frozenset[str], shared: str = "") -> list[Shown]:
        """Return the examples of a question that have `shared` in common with it.

        There is one fewer than configured if one was the question itself, and no other is left.

        Raises:
            SourceError: There are too few such examples.
        """
        chosen: list[Shown] = []
        is_among = False
        examples = self._in_order()
        while len(chosen) < self._number and (example := next(examples, None)) is not None:
            if example.shared == shared and example.identities & identities:
                is_among = True
            elif example.shared == shared:
                chosen.append(example.shown)
        if shared and len(chosen) + is_among < self._number:
            raise SourceError(
                f"{self._place}: only {len(chosen)} share {shared!r} with their question, not "
                f"{self._number}; lower `num_fewshot`, or change `fewshot_same`"
            )
        self._counts["questions"] += is_among
        self._counts["fewer"] += is_among and len(chosen) < self._number
        return chosen

    def _in_order(self) -> Iterator[SolvedExample[Shown]]:
        for place in self._places():
            self._read += islice(self._rows, max(0, place + 1 - len(self._read)))
            if place >= len(self._read):
                return
            if place not in self._solved:
                number, row = self._read[place]
                with at_row(f"{self._place}: row {number}"):
                    self._solved[place] = self._solve(row)
            yield self._solved[place]

    def _places(self) -> Iterable[int]:
        if self._draw is None:
            return count()
        every = range(len(self._read))
        drawn = self._draw.sample(every, self._number)
        return chain(drawn, (place for place in every if place not in drawn))


def log_replaced(key: str, counts: Counter[str], asked: int) -> None:
    """Say how many questions of a task had to be replaced among their examples, if any were."""
    if counts["questions"]:
        fewer = counts["fewer"]
        left = f"; {fewer} of them have one example less" if fewer else ""
        log.warning(
            "%s: %d of %d questions are themselves among the rows of solved examples; each gets the "
            "next row in place of itself%s",
            *(key, counts["questions"], asked, left),
        )


def example_rows(
    key: str, task: Task | GenerationTask, split: ResolvedSplit
) -> Iterator[tuple[int, DatasetRow]]:
    """Return the rows, with their numbers, that may become solved examples, in order.

    They are drawn by the task's seed if all questions have the same examples.

    Raises:
        ConfigError: The split is that of the questions.
        SourceError: It has too few rows.
    """
    if split.split == task.split and task.dataset is not None:
        raise ConfigError(
            f"{key}.fewshot_split: examples from {task.split!r} would be among the questions; name "
            "another split"
        )
    rows: Iterator[tuple[int, DatasetRow]] = enumerate(split.rows())
    if task.fewshot_seed is not None and not getattr(task, "fewshot_anew", False):
        drawn = list(rows)
        random.Random(task.fewshot_seed).shuffle(drawn)
        rows = iter(drawn)
    first = list(islice(rows, task.num_fewshot))
    if len(first) < task.num_fewshot:
        raise SourceError(
            f"{key}: {split} has {len(first)} examples, not {task.num_fewshot}; lower "
            "`num_fewshot`, or choose another `fewshot_split`"
        )
    return chain(first, rows)

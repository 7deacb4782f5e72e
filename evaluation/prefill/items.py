"""Read a task's rows: each becomes an item, behind solved examples none of which is the question itself.

A row has two identities: `question`, of the question as it is rendered, and `row`, of the fields that
it was read from. Questions that share one of them rest on one source row, whatever their split, file or
task is called. Solved examples, repeated questions and questions that tasks share are all recognised by
these (`metrics.layout.joined`).
"""

import contextlib
import json
import logging
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from evaluation.errors import ConfigError, SourceError, first_few
from evaluation.files import fingerprint
from evaluation.prefill.sources import DatasetRow, ResolvedSplit, describe, locate_item, state_of
from evaluation.prefill.templates import RowTemplates, at_row
from evaluation.settings.config import Config
from evaluation.settings.generation import GenerationTask
from evaluation.settings.sources import Task

log = logging.getLogger(__name__)

_EXPECTED = 10
"""Rows of a label that would be expected among those used, from which on it is told that there is none."""


def question_identity(contexts: Collection[str], candidates: Collection[str] = ()) -> str:
    """Return the identity of a rendered question, whatever the order of candidates and its white space.

    Contexts are without description and solved examples; there are candidates where they are ranked.
    """
    parts = (sorted({" ".join(text.split()) for text in texts}) for texts in (contexts, candidates))
    return fingerprint(list(parts))


def row_identity(row: Mapping[str, Any]) -> str:
    """Return the identity of a row's fields; an absent field is the same as a null."""
    content = {str(name): value for name, value in row.items() if value is not None}
    return fingerprint(json.dumps(content, sort_keys=True, ensure_ascii=False, default=str))


class RowRecipe(ABC):
    """A task's templates, compiled once; raises ConfigError for one that does not parse."""

    def __init__(
        self,
        key: str,
        task: Task | GenerationTask,
        texts: Mapping[str, str | None],
        expressions: Mapping[str, str | None],
    ) -> None:
        self.key, self.name = key, key.partition(".")[2]
        self.templates = RowTemplates(key, task.let, texts, expressions)
        self.text = self.templates.text

    @abstractmethod
    def item(self, row: DatasetRow, id: str, examples: Sequence[Any]) -> Any:
        """Return the question or prompt of a row behind its solved examples."""

    @abstractmethod
    def asked(self, values: Mapping[str, Any]) -> list[str]:
        """Return the texts that make a row the same question as another."""

    @abstractmethod
    def solved(self, values: Mapping[str, Any]) -> Any:
        """Return a row as a solved example."""

    @abstractmethod
    def groups(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a sorted split is sorted by: the label, and fixed groups."""

    def label(self, row: DatasetRow) -> str:
        """Return a row's groups in words; "" where they cannot be told."""
        with contextlib.suppress(SourceError):
            groups = self.groups(self.templates.values(row)).items()
            return ", ".join(f"{name} {value!r}" for name, value in groups if value is not None)
        return ""


class SolvedExamples:
    """The examples of a task: the first `rows` that are not the question, by the seed if it has one.

    `counts` counts `questions` that were an example themselves, and `fewer`, those without another.
    """

    def __init__(
        self,
        recipe: RowRecipe,
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
        self._example = cache(self._read)

    def before(self, row: DatasetRow) -> list[Any]:
        """Return the examples of a row's question.

        There is one fewer than configured if one was the question itself, and no other is left.
        """
        if not self._number:
            return []
        identities, shared, _ = self._described(row)
        order, chosen, is_among = self._order, list[Any](), False
        if self._draw is not None:
            drawn = self._draw.sample(order, self._number)
            order = [*drawn, *(place for place in order if place not in drawn)]
        for place in order:
            if len(chosen) == self._number:
                break
            theirs, group, shown = self._example(place)
            if group == shared and theirs & identities:
                is_among = True
            elif group == shared:
                chosen.append(shown)
        if shared and len(chosen) + is_among < self._number:
            raise SourceError(
                f"{self._recipe.key}: only {len(chosen)} examples share {shared!r} with their question, not "
                f"{self._number}; lower `num_fewshot`, or change `fewshot_same`"
            )
        self._counts["questions"] += is_among
        self._counts["fewer"] += is_among and len(chosen) < self._number
        return chosen

    def _read(self, place: int) -> tuple[frozenset[str], str | None, Any]:
        with at_row(f"{self._recipe.key}: solved example {place}"):
            same, shared, values = self._described(self._rows[place])
            return same, shared, self._recipe.solved(values)

    def _described(self, row: DatasetRow) -> tuple[frozenset[str], str | None, dict[str, Any]]:
        """Return a row's identities, what it shares with its examples, and its values for templates."""
        values = self._recipe.templates.values(row)
        same = row_identity(row), question_identity(self._recipe.asked(values))
        return frozenset(same), self._recipe.text("fewshot_same", values), values


def read_items(
    recipe: RowRecipe,
    task: Task | GenerationTask,
    splits: Sequence[ResolvedSplit],
    shots: Sequence[ResolvedSplit],
) -> tuple[list[Any], int, Counter[str]]:
    """Return the items in order, how many there are without the limit, and counts of replaced examples.

    The limit is distributed over the configurations, which have a split each, and perhaps one of examples.
    """
    if any(split.split == task.split and task.dataset is not None for split in shots):
        raise ConfigError(
            f"{recipe.key}.fewshot_split: examples from {task.split!r} would be among the questions; name "
            "another split"
        )
    read = [split.first(task.limit) for split in splits]
    rest = [Counter(map(recipe.label, behind)) for _, behind in read]
    sizes = [len(rows) + more.total() for (rows, _), more in zip(read, rest, strict=True)]
    items, counts = list[Any](), Counter[str]()
    for number, quota in enumerate(even_quotas(task.limit, sizes)):
        split, rows = splits[number], read[number][0]
        solved = shots[number].rows() if shots else getattr(task, "fewshot_examples", ())
        examples = SolvedExamples(recipe, task, solved, counts)
        config = split.config if getattr(task, "configs", ()) else None
        prefix = f"{recipe.name}/{config}" if config else recipe.name
        for index, row in enumerate(rows[:quota]):
            with at_row(f"{split}: {prefix}/{index}"):
                items.append(recipe.item(row, f"{prefix}/{index}", examples.before(row)))
        if others := rest[number] + Counter(map(recipe.label, rows[quota:])):
            used = Counter(map(recipe.label, rows[:quota]))
            _warn_of_sorted(f"{recipe.key}: {split}", used, others)
    if counts["questions"]:
        log.warning(
            "%s: %d of %d questions are themselves among the rows of solved examples; each gets the "
            "next row in place of itself, and %d have one example less",
            *(recipe.key, counts["questions"], len(items), counts["fewer"]),
        )
    return items, sum(sizes), counts


def read_task(
    recipe: RowRecipe, task: Task | GenerationTask, settings: Config
) -> tuple[list[Any], int, dict[str, Any]]:
    """Return the items in order, how many there are without the limit, and their origin for meta.json."""
    splits, shots = locate_item(task, settings)
    state = state_of([*splits, *shots])
    items, total, replaced = read_items(recipe, task, splits, shots)
    source = describe([*splits, *shots], state)
    return items, total, {"solved_examples": dict(replaced), "source": source}


def warn_of_equal(key: str, golds: Sequence[Any]) -> None:
    """Log that all gold answers are equal, as where a field of hidden labels is read."""
    if len(golds) >= _EXPECTED and len(set(map(repr, golds))) == 1:
        words = "%s: the gold answers of all %d rows are %.60r; correct them if labels are hidden"
        log.warning(words, key, len(golds), golds[0])


def even_quotas(limit: int, sizes: Sequence[int]) -> list[int]:
    """Return how many items to take from each part, `limit` in all, as equal as their sizes allow."""
    quotas = [0] * len(sizes)
    left = min(limit, sum(sizes))
    smallest_first = sorted(range(len(sizes)), key=lambda part: sizes[part])
    for done, part in enumerate(smallest_first):
        quotas[part] = min(sizes[part], left // (len(sizes) - done))
        left -= quotas[part]
    return quotas


def _warn_of_sorted(place: str, used: Counter[str], others: Counter[str]) -> None:
    """Warn where rows beyond the limit have labels that none of the used ones has: the split is sorted."""
    total = used.total() + others.total()
    expected = {label: n * used.total() / total for label, n in others.items() if label not in used}
    absent = [label for label, number in expected.items() if label and number >= _EXPECTED]
    if absent:
        log.warning(
            "%s: none of the first %d of %d rows has %s, so the split seems to be sorted; raise `limit`, or "
            "name a shuffled copy under `files`",
            *(place, used.total(), total, first_few(sorted(absent))),
        )

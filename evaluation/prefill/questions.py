"""Tier3 tasks: rows of a benchmark as contexts and candidate continuations.

An item's context is the task's description, its solved examples and the question, joined as
lm-evaluation-harness joins them: `description` as it is, the rest by a blank line.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from evaluation.errors import ConfigError, SourceError
from evaluation.prefill.files import Row, check_not_binary, check_unicode
from evaluation.prefill.limits import OutOfTime, row_limits
from evaluation.prefill.sources import Origin
from evaluation.prefill.templates import (
    Render,
    compile_expression,
    compile_template,
    expression_fields,
    fields_of,
    reason_of,
)
from evaluation.settings.generation import GenerationTask
from evaluation.settings.model import LARGEST_COUNT
from evaluation.settings.suites import Task

_BETWEEN = "\n\n"

Pair = tuple[str, str]
"""A context and its continuation."""


@dataclass(frozen=True)
class Question:
    """An item as text: one pair per candidate, and one per candidate without the question."""

    id: str
    cluster: str | None
    stratum: str | None
    gold: int
    pairs: tuple[Pair, ...]
    unconditional: tuple[Pair, ...] | None


class Recipe:
    """A task's templates, compiled once; raises ConfigError for one that does not parse."""

    def __init__(self, name: str, task: Task) -> None:
        self.name = name
        self._let = [
            (variable, compile_expression(f"tasks.{name}.let.{variable}", source))
            for variable, source in task.let.items()
        ]
        self._choices = compile_expression(f"tasks.{name}.choices", task.choices)
        self._gold = compile_expression(f"tasks.{name}.gold", task.gold)
        self._context = compile_template(f"tasks.{name}.context", task.context)
        self._continuation = compile_template(f"tasks.{name}.continuation", task.continuation)
        self._description = compile_template(f"tasks.{name}.description", task.description)
        self._cluster = self._optional("cluster", task.cluster)
        self._stratum = self._optional("stratum", task.stratum)
        self._unconditional = self._optional("unconditional_context", task.unconditional_context)
        written = (task.cluster, task.stratum, task.unconditional_context)
        self._fields = fields_of(
            *(task.context, task.continuation, task.description),
            *(source for source in written if source is not None),
        ) | expression_fields(task.choices, task.gold, *task.let.values())

    def _optional(self, key: str, source: str | None) -> Render | None:
        return None if source is None else compile_template(f"tasks.{self.name}.{key}", source)

    def question(self, row: Row, id: str, examples: str) -> Question:
        """The item of a row; raises SourceError for one without a label, or an empty candidate."""
        values = self._values(row)
        choices = self._list_of_choices(values)
        gold = self._index_of_gold(values, len(choices))
        before = self._description(values) + examples
        pairs = []
        unconditional = []
        for index, choice in enumerate(choices):
            shown = values | {"choice": choice, "index": index}
            continuation = self._continuation(shown)
            if not continuation.strip():
                raise SourceError(
                    f"candidate {index} is empty; correct `choices` or `continuation` of "
                    f"tasks.{self.name}, or the data"
                )
            pairs.append((before + self._context(shown), continuation))
            if self._unconditional is not None:
                unconditional.append((self._unconditional(shown), continuation))
        cluster = None if self._cluster is None else self._cluster(values)
        stratum = None if self._stratum is None else self._stratum(values)
        for text in (cluster or "", stratum or "", *chain.from_iterable((*pairs, *unconditional))):
            check_unicode(text)
        return Question(id, cluster, stratum, gold, tuple(pairs), tuple(unconditional) or None)

    def solved(self, row: Row) -> str:
        """A row as a solved example: the context and the right continuation."""
        values = self._values(row)
        choices = self._list_of_choices(values)
        gold = self._index_of_gold(values, len(choices))
        shown = values | {"choice": choices[gold], "index": gold}
        return str(self._context(shown)) + str(self._continuation(shown))

    def _values(self, row: Row) -> dict[str, Any]:
        values = dict(row)
        check_not_binary({name: values[name] for name in self._fields & values.keys()})
        for variable, expression in self._let:
            values[variable] = expression(values)
        return values

    def _list_of_choices(self, values: dict[str, Any]) -> list[Any]:
        choices = self._choices(values)
        if not isinstance(choices, list | tuple) or len(choices) < 2:
            raise SourceError(
                f"tasks.{self.name}.choices gives {_shown(choices)}, not a list of two or more; correct the expression"
            )
        return list(choices)

    def _index_of_gold(self, values: dict[str, Any], choices: int) -> int:
        """The right candidate; hidden labels are -1, empty, None, or not among the choices."""
        try:
            gold = self._gold(values)
        except SourceError as error:
            if "is not in list" in str(error):  # `list.index` of a label that is not there
                raise self._no_label(str(error)) from None
            raise
        if isinstance(gold, bool) or not isinstance(gold, int) or not 0 <= gold < choices:
            raise self._no_label(f"`gold` gives {_shown(gold)} for {choices} candidates")
        return gold

    def _no_label(self, what: str) -> SourceError:
        return SourceError(
            f"no usable label ({what}): the labels of this split are hidden, or "
            f"tasks.{self.name}.gold reads the wrong field; use a split with labels"
        )


def read_questions(
    recipe: Recipe, task: Task, origins: Sequence[Origin], shots: Sequence[Origin]
) -> tuple[list[Question], int]:
    """The items to score, in order, and how many there are without the limit.

    `origins` and `shots` hold one split per configuration; the limit is spread over them.
    """
    rows, counts = zip(*(_rows(recipe, origin, task.limit) for origin in origins), strict=True)
    quotas = spread(task.limit, counts)
    questions: list[Question] = []
    for number, (origin, part, quota) in enumerate(zip(origins, rows, quotas, strict=True)):
        prefix = "/".join(
            [recipe.name, *([origin.config] if origin.config and task.configs else [])]
        )
        examples = solved_examples(recipe, task, shots[number]) if task.num_fewshot else ""
        for index, row in enumerate(islice(part, quota)):
            with_place = f"{prefix}/{index}"
            questions.append(_placed(recipe, row, with_place, examples, origin))
    return questions, sum(counts)


def _placed(recipe: Recipe, row: Row, id: str, examples: str, origin: Origin) -> Question:
    try:
        with row_limits():
            return recipe.question(row, id, examples)
    except (SourceError, OutOfTime, MemoryError) as error:
        raise SourceError(f"{origin}: {id}: {reason_of(error)}") from None


def _rows(recipe: Recipe, origin: Origin, limit: int) -> tuple[list[Row], int]:
    """The rows that can be asked, and how many there are."""
    rows, count = origin.first(limit)
    if not rows:
        raise SourceError(
            f"task {recipe.name}: {origin} has no rows; choose another split or config"
        )
    return rows, count


def solved_examples(recipe: Recipe, task: Task, origin: Origin) -> str:
    """The same solved examples for every question, each followed by a blank line."""
    chosen = example_rows(f"tasks.{recipe.name}", task, origin)
    return "".join(_solved(recipe, row, number, origin) + _BETWEEN for number, row in chosen)


def example_rows(key: str, task: Task | GenerationTask, origin: Origin) -> list[tuple[int, Row]]:
    """The rows that become solved examples, with their numbers; `key` is the task's in the suite."""
    if origin.split == task.split:
        raise ConfigError(
            f"{key}.fewshot_split: examples from {task.split!r} would be among the questions; name "
            "another split"
        )
    rows: Iterator[tuple[int, Row]] | list[tuple[int, Row]] = enumerate(origin.rows())
    if task.fewshot_seed is not None:
        rows = list(enumerate(origin.first(LARGEST_COUNT)[0]))
        random.Random(task.fewshot_seed).shuffle(rows)
    chosen = list(islice(rows, task.num_fewshot))
    if len(chosen) < task.num_fewshot:
        raise SourceError(
            f"{key}: {origin} has {len(chosen)} examples, not {task.num_fewshot}; lower "
            "`num_fewshot`, or choose another `fewshot_split`"
        )
    return chosen


def _solved(recipe: Recipe, row: Row, number: int, origin: Origin) -> str:
    try:
        with row_limits():
            return recipe.solved(row)
    except (SourceError, OutOfTime, MemoryError) as error:
        raise SourceError(f"{origin}: row {number}: {reason_of(error)}") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def spread(limit: int, sizes: Sequence[int]) -> list[int]:
    """Items to take of each part: as equal as the parts allow, `limit` in all at most."""
    quotas = [0] * len(sizes)
    left = min(limit, sum(sizes))
    open_parts = sorted(range(len(sizes)), key=lambda part: sizes[part])
    for done, part in enumerate(open_parts):
        quotas[part] = min(sizes[part], left // (len(open_parts) - done))
        left -= quotas[part]
    return quotas

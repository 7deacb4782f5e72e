"""Read a task's rows, and make of each what its recipe makes: a question, or a prompt."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from evaluation.errors import ConfigError
from evaluation.prefill.row_identity import warn_of_sorted
from evaluation.prefill.solved_examples import SolvedExamples
from evaluation.prefill.sources import ResolvedSplit
from evaluation.prefill.templates import at_row
from evaluation.settings.generation import GenerationTask
from evaluation.settings.sources import Task

log = logging.getLogger(__name__)


def read_items(
    recipe: Any,
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
            warn_of_sorted(f"{recipe.key}: {split}", used, others)
    if counts["questions"]:
        log.warning(
            "%s: %d of %d questions are themselves among the rows of solved examples; each gets the "
            "next row in place of itself, and %d have one example less",
            *(recipe.key, counts["questions"], len(items), counts["fewer"]),
        )
    return items, sum(sizes), counts


def even_quotas(limit: int, sizes: Sequence[int]) -> list[int]:
    """Return how many items to take from each part, `limit` in all, as equal as their sizes allow."""
    quotas = [0] * len(sizes)
    left = min(limit, sum(sizes))
    smallest_first = sorted(range(len(sizes)), key=lambda part: sizes[part])
    for done, part in enumerate(smallest_first):
        quotas[part] = min(sizes[part], left // (len(sizes) - done))
        left -= quotas[part]
    return quotas

"""Tier3 tasks: turn rows of a benchmark into contexts and candidate continuations.

An item's context is the task's description, its solved examples and the question. They are joined as
in lm-evaluation-harness: `description` unchanged, the rest with blank lines between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import DatasetRow
from evaluation.prefill.row_identity import question_identity, row_identity
from evaluation.prefill.solved_examples import Replaced, SolvedExample, SolvedExamples, example_rows
from evaluation.prefill.sources import ResolvedSplit
from evaluation.prefill.templates import RowTemplates, at_row, fields_of
from evaluation.settings.sources import Task
from evaluation.settings.suites import Message

_BETWEEN = "\n\n"

Pair = tuple[str, str]
"""A context and its continuation."""


@dataclass(frozen=True)
class Question:
    """An item as text: one pair for each candidate, and one more without the question for `pmi`."""

    id: str
    cluster: str | None
    stratum: str | None
    gold: int
    pairs: tuple[Pair, ...]
    unconditional: tuple[Pair, ...] | None
    counts_space: bool = False
    """Whether lengths of candidates count the space that they begin with."""
    question: str = ""
    row: str | None = None
    """Identities of the question as rendered, and of the row; see `row_identity`."""

    @property
    def scored_pairs(self) -> tuple[Pair, ...]:
        """Pairs in the order in which they are tokenized."""
        return self.pairs + (self.unconditional or ())


@dataclass(frozen=True)
class TaskPrompt:
    """A row as turns of a chat, or as one text; and its document, which verifiers read."""

    id: str
    turns: tuple[Message, ...] | str
    document: Mapping[str, Any]
    strata: Mapping[str, str]
    question: str = ""
    row: str | None = None
    """Identities of the question as rendered, and of the row; see `row_identity`."""
    cluster: str | None = None


@dataclass(frozen=True)
class TaskPrompts:
    """A task's prompts in order, and how many there are without the limit."""

    prompts: list[TaskPrompt]
    total: int
    max_new_tokens: int
    replaced: Replaced = field(default_factory=Replaced)


_TEXTS = ("context", "continuation", "description", "cluster", "stratum", "unconditional_context")


class Recipe:
    """A task's templates, compiled once; raises ConfigError for one that does not parse."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, texts = name, {part: getattr(task, part) for part in _TEXTS}
        ranked = {"choices": task.choices, "gold": task.gold}
        self._templates = RowTemplates(f"tasks.{name}", task.let, texts, ranked)
        self._is_ranked = task.choices is not None
        self._asks = bool(fields_of(task.context) - {"choice", "index"})

    def question(self, row: DatasetRow, id: str, examples: str) -> Question:
        """Return the question of a row; `examples` are solved ones as text, which stand before it.

        Raises:
            SourceError: The row has no label, or a candidate is empty.
        """
        values, text = self._templates.values(row), self._templates.text
        choices, gold = self._candidates(values)
        before = f"{text('description', values)}{examples}"
        pairs, unconditional, contexts = [], [], []
        for index, choice in enumerate(choices):
            shown = values | choice
            contexts.append(str(text("context", shown)))
            continuation = str(text("continuation", shown))
            if not continuation.strip():
                what = f"candidate {index}" if self._is_ranked else "the answer"
                raise SourceError(
                    f"{what} is empty; correct `choices` or `continuation` of "
                    f"tasks.{self.name}, or the data"
                )
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

    def identities(self, row: DatasetRow) -> frozenset[str]:
        """Return by what a row is recognised among solved examples: its fields, or its contexts alone.

        Other wrong candidates do not make another question. Where no field is in the context, the
        candidates are the question.
        """
        values, text = self._templates.values(row), self._templates.text
        shown = [values | choice for choice in self._candidates(values)[0]]
        asked = "context" if self._asks else "continuation"
        contexts = [str(text(asked, one)) for one in shown]
        return frozenset((row_identity(row), question_identity(contexts)))

    def solved(self, row: DatasetRow) -> SolvedExample[str]:
        """Return a row as a solved example: context and right continuation as one text."""
        values, text = self._templates.values(row), self._templates.text
        choices, gold = self._candidates(values)
        shown = values | choices[gold]
        solved = f"{text('context', shown)}{text('continuation', shown)}"
        return SolvedExample(self.identities(row), solved)

    def _candidates(self, values: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
        """Return each candidate's variables for templates, and the index of the right one."""
        if not self._is_ranked:
            return [{}], 0
        choices = self._list_of_choices(values)
        seen = [{"choice": choice, "index": index} for index, choice in enumerate(choices)]
        return seen, self._index_of_gold(values, len(choices))

    def _list_of_choices(self, values: dict[str, Any]) -> list[Any]:
        choices = self._templates.expressions["choices"](values)
        if not isinstance(choices, list | tuple) or len(choices) < 2:
            raise SourceError(
                f"tasks.{self.name}.choices gives {_shown(choices)}, not a list of two or more; "
                "correct the expression"
            )
        return list(choices)

    def _index_of_gold(self, values: dict[str, Any], choices: int) -> int:
        """Return the right candidate; hidden labels are -1, empty, None, or not among the choices."""
        try:
            gold = self._templates.expressions["gold"](values)
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
    recipe: Recipe, task: Task, origins: Sequence[ResolvedSplit], shots: Sequence[ResolvedSplit]
) -> tuple[list[Question], int, Replaced]:
    """Return the questions in order, how many there are without the limit, and replaced examples.

    Args:
        task: The task, whose limit is distributed over its configurations.
        origins: One split per configuration.
        shots: The split of solved examples per configuration; empty without solved examples.
    """
    rows, counts = zip(*(_rows(recipe, origin, task.limit) for origin in origins), strict=True)
    quotas = even_quotas(task.limit, counts)
    questions: list[Question] = []
    replaced = Replaced()
    for number, (origin, part, quota) in enumerate(zip(origins, rows, quotas, strict=True)):
        examples = _solved_examples(recipe, task, shots[number]) if task.num_fewshot else None
        prefix = f"{recipe.name}/{origin.config}" if origin.config and task.configs else recipe.name
        for index, row in enumerate(part[:quota]):
            id = f"{prefix}/{index}"
            before = _before(recipe, examples, row, f"{origin}: {id}")
            with at_row(f"{origin}: {id}"):
                questions.append(recipe.question(row, id, before))
        if examples is not None:
            replaced += Replaced(examples.replaced, examples.fewer)
    replaced.log(f"tasks.{recipe.name}", len(questions))
    return questions, sum(counts), replaced


def _before(
    recipe: Recipe, examples: SolvedExamples[str] | None, row: DatasetRow, place: str
) -> str:
    """Return a question's solved examples, each followed by a blank line."""
    if examples is None:
        return ""
    with at_row(place):
        identities = recipe.identities(row)
    return "".join(f"{example}{_BETWEEN}" for example in examples.before(identities))


def _rows(recipe: Recipe, origin: ResolvedSplit, limit: int) -> tuple[list[DatasetRow], int]:
    """Return the rows within the limit, and the number of all rows."""
    rows, count = origin.first(limit)
    if not rows:
        raise SourceError(
            f"task {recipe.name}: {origin} has no rows; choose another split or config"
        )
    return rows, count


def _solved_examples(recipe: Recipe, task: Task, origin: ResolvedSplit) -> SolvedExamples[str]:
    rows = example_rows(f"tasks.{recipe.name}", task, origin)
    return SolvedExamples(str(origin), rows, task.num_fewshot, recipe.solved)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def even_quotas(limit: int, sizes: Sequence[int]) -> list[int]:
    """Return how many items to take from each part, `limit` in all, as equal as their sizes allow."""
    quotas = [0] * len(sizes)
    left = min(limit, sum(sizes))
    smallest_first = sorted(range(len(sizes)), key=lambda part: sizes[part])
    for done, part in enumerate(smallest_first):
        quotas[part] = min(sizes[part], left // (len(sizes) - done))
        left -= quotas[part]
    return quotas

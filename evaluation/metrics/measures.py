"""Measures that detect smaller differences than accuracy does, from the same log-probabilities.

An accuracy changes only where a question's outcome changes; these change with every question.
`settings.tiers` has their names, units and directions, as secondary metrics next to Tier3's headline.
For a question with log-probabilities l_c (sums over the tokens of candidate c, in nats) and the right
answer g:

    gold_bits_per_byte    -l_g / (ln 2 * bytes of g): what the right answer costs, whatever the others
                          do (Magnusson et al., DataDecide, arXiv 2504.11393; Heineman et al., Signal
                          and Noise, arXiv 2508.13144)
    correct_probability   exp(l_g) / sum_c exp(l_c): the softmax over the sums themselves, as `raw`
                          ranks them, so not divided by any length

A task's value is the unweighted mean over its questions. Bytes are those of the
candidate's text without a leading space, as `per_byte` counts them. Where several
candidates are right, the best of them counts, and their probabilities add up.

Where only the right answer is scored, all of its bytes count. Of these measures there is only the first
then, and

    greedy                1 if every token of the right answer is the most likely one, else 0
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.errors import ScoringError
from evaluation.metrics.accuracy import (
    Groups,
    Outcomes,
    candidate_scores,
    check_items,
    credit_items,
    layout_of,
)
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats, standard_error
from evaluation.settings.sources import Normalization
from evaluation.settings.tiers import TIERS, TaskKind

MEASURES = tuple(metric.name for metric in TIERS["tier3"].secondary)


@dataclass(frozen=True)
class Questions:
    """What was measured on the questions of a task, (questions,) each.

    `outcomes` are by the way of comparing candidates, none where only right answers are scored;
    `measures` are by the metric.
    """

    kind: TaskKind
    groups: Groups
    layout: Layout
    outcomes: Mapping[str, Outcomes]
    measures: Mapping[str, Floats]

    def ranked_by(self, primary: Normalization) -> Outcomes:
        """Return the outcomes by the primary way; raise ScoringError where there are none."""
        if primary not in self.outcomes:
            raise ScoringError(
                f"the primary metric {primary} cannot be computed: no unconditional candidates were "
                "scored; set `unconditional_context` and run again"
            )
        return self.outcomes[primary]


def measure_questions(table: pa.Table, kind: TaskKind = "ranked") -> Questions:
    """Measure each question of a table of candidates.

    Raises:
        NonFiniteError: A log-probability is NaN or infinite; it names the item.
        ScoringError: There are no items, or one cannot be measured; it names the item.
    """
    groups, scores = check_items(table, kind), candidate_scores(table)
    gold = table["gold"].to_numpy(zero_copy_only=False)
    _check_right_candidates(table, gold, groups)
    layout = layout_of(table, groups)
    if kind == "gold":
        measures = {"gold_bits_per_byte": _bits(scores, gold, groups), "greedy": greedy(table)}
        return Questions(kind, groups, layout, {}, measures)
    _check_wrong_candidates(table, gold, groups)
    outcomes = {name: credit_items(score, gold, groups) for name, score in scores.items()}
    measures = {name: _FORMULAS[name](scores, gold, groups) for name in MEASURES}
    return Questions(kind, groups, layout, outcomes, measures)


def greedy(table: pa.Table) -> Floats:
    """Return 1 for each right answer that is greedy, else 0; raise ScoringError if that is not stored."""
    check_items(table, "gold")
    if table["is_greedy"].null_count:
        raise ScoringError("whether an answer is greedy is not stored; score it again")
    found: Floats = table["is_greedy"].to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def summarize_questions(questions: Questions, primary: Normalization) -> dict[str, Any]:
    """Return a task's accuracies by every way of comparing, the headline by `primary`, and its measures.

    `centered` is 0 at chance and 1 if all are right: (accuracy - chance) / (1 - chance).

    Raises:
        ScoringError: There is nothing to compute the primary from.
    """
    measures = {name: float(values.mean()) for name, values in questions.measures.items()}
    if questions.kind == "gold":
        bits = questions.measures["gold_bits_per_byte"]
        stderr = standard_error(bits, questions.layout.groups)
        return {"kind": "gold", **measures, "stderr": stderr, "nan": 0}
    credit, tied = questions.ranked_by(primary)
    metrics = {name: float(one.credit.mean()) for name, one in questions.outcomes.items()}
    accuracy, chance = metrics[primary], float((1 / questions.groups.sizes).mean())
    return {
        "accuracy": accuracy,
        "primary": primary,
        "metrics": metrics,
        "centered": (accuracy - chance) / (1 - chance),
        "chance": chance,
        "stderr": standard_error(credit, questions.layout.groups),
        "items": len(credit),
        "ties": int(tied.sum()),
        "nan": 0,  # one raises NonFiniteError
        **measures,
    }


def with_measures(table: pa.Table, questions: Questions) -> pa.Table:
    """Add a column for each measure to a table: a question's value at its first candidate, else null."""
    for name in MEASURES:
        column = np.full(table.num_rows, np.nan)
        column[questions.groups.starts] = questions.measures.get(name, np.nan)
        table = table.append_column(name, pa.array(column, from_pandas=True))
    return table


def _check_right_candidates(table: pa.Table, gold: NDArray[np.bool_], groups: Groups) -> None:
    wrong = np.flatnonzero(~np.logical_or.reduceat(gold, groups.starts))
    if len(wrong):
        name = table["item"][int(groups.starts[wrong[0]])]
        raise ScoringError(f"{name}: it has no right candidate; write its candidates again")


def _check_wrong_candidates(table: pa.Table, gold: NDArray[np.bool_], groups: Groups) -> None:
    alike = np.flatnonzero(np.logical_and.reduceat(gold, groups.starts))
    if len(alike):
        name = table["item"][int(groups.starts[alike[0]])]
        raise ScoringError(f"{name}: all of its candidates are right; leave it out")


def margins(scores: Floats, gold: NDArray[np.bool_], groups: Groups) -> Floats:
    """Return how far each right candidate is above the best other one, in the unit of the scores."""
    return _best(scores, gold, groups) - _best(scores, ~gold, groups)


def _best(scores: Floats, counted: NDArray[np.bool_], groups: Groups) -> Floats:
    """Return the highest score (questions,) of the candidates that are counted."""
    best: Floats = np.maximum.reduceat(np.where(counted, scores, -np.inf), groups.starts)
    return best


def _softmax(logprob: Floats, groups: Groups) -> Floats:
    """Return each candidate's share of the sum of exp(logprob), with the largest subtracted before exp."""
    top = np.repeat(np.maximum.reduceat(logprob, groups.starts), groups.sizes)
    weights = np.exp(logprob - top)
    share: Floats = weights / np.repeat(np.add.reduceat(weights, groups.starts), groups.sizes)
    return share


Formula = Callable[[Mapping[str, Floats], NDArray[np.bool_], Groups], Floats]
"""A measure of each question, from candidates' scores by their way of comparing and from which are right."""


def _bits(scores: Mapping[str, Floats], gold: NDArray[np.bool_], groups: Groups) -> Floats:
    return -_best(scores["per_byte"], gold, groups) / math.log(2)


def _probability(scores: Mapping[str, Floats], gold: NDArray[np.bool_], groups: Groups) -> Floats:
    """Return the right candidates' share of all probability."""
    shares = np.where(gold, _softmax(scores["raw"], groups), 0.0)
    total: Floats = np.add.reduceat(shares, groups.starts)
    return total


_FORMULAS: Mapping[str, Formula] = {
    "gold_bits_per_byte": _bits,
    "correct_probability": _probability,
}
"""A formula for each secondary metric of Tier3."""

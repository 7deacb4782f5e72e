"""Measures that detect smaller differences than accuracy does, from the same log-probabilities.

An accuracy changes only where a question's outcome changes; these change with every question. `settings.tiers`
has their names, units and directions, as secondary metrics next to Tier3's headline. For a question with
log-probabilities l_c (sums over the tokens of candidate c, in nats) and the right answer g:

    gold_bits_per_byte    -l_g / (ln 2 * bytes of g): what the right answer costs, whatever the others
                          do (Magnusson et al., DataDecide, arXiv 2504.11393; Heineman et al., Signal
                          and Noise, arXiv 2508.13144)
    correct_probability   exp(l_g) / sum_c exp(l_c): the softmax over the sums themselves, as `raw`
                          ranks them, so not divided by any length
    gold_margin           l_g / characters of g - max over the others of l_c / characters of c
    brier_score           sum_c (p_c - y_c)^2, with p the softmax as above and y_c 1 for the right answers,
                          each 1/k of k (Brier, Monthly Weather Review 78, 1950)
    calibration_error     sign_b (y - p) of the likeliest candidate, with sign_b that of the sum of (y - p)
                          over the questions in its bin b of p, of BINS of equal width. The mean over
                          questions is the expected calibration error (Guo et al., arXiv 1706.04599)

A task's value is the unweighted mean over its questions. Bytes and characters are those of the
candidate's text without a leading space, as `per_byte` and `per_char` count them. Where several
candidates are right, the best of them counts, and their probabilities add up.

Where only the right answer is scored, all of its bytes count. Only the first of these measures exists then, and

    greedy                1 if every token of the right answer is the most likely one, else 0
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.errors import ScoringError
from evaluation.metrics.accuracy import (
    Groups,
    candidate_scores,
    check_items,
    credit_items,
    layout_of,
    standard_error,
)
from evaluation.metrics.variance import Floats
from evaluation.settings.tiers import TIERS, TaskKind

MEASURES = tuple(metric.name for metric in TIERS["tier3"].secondary)

BINS = 15
"""Bins of the calibration error."""


def choice_measures(table: pa.Table, kind: TaskKind = "ranked") -> dict[str, Floats]:
    """Return the measures of each question, (questions,) each.

    Raises:
        NonFiniteError: A log-probability is NaN or infinite; it names the item.
        ScoringError: An item cannot be measured; it names the item.
    """
    groups, scores = check_items(table, kind), candidate_scores(table)
    gold = table["gold"].to_numpy(zero_copy_only=False)
    if kind == "gold":
        return {"gold_bits_per_byte": _bits(scores, gold, groups)}
    _check_wrong_candidates(table, gold, groups)
    return {name: _FORMULAS[name](scores, gold, groups) for name in MEASURES}


def greedy(table: pa.Table) -> Floats:
    """Return 1 for each right answer that is greedy, else 0; raise ScoringError if that is not stored."""
    check_items(table, "gold")
    if table["is_greedy"].null_count:
        raise ScoringError("whether an answer is greedy is not stored; score it again")
    found: Floats = table["is_greedy"].to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def summarize_gold(table: pa.Table) -> dict[str, Any]:
    """Return a task's measures where only right answers are scored, with the standard error of its headline."""
    (bits,), groups = choice_measures(table, "gold").values(), check_items(table, "gold")
    return {
        "kind": "gold",
        "gold_bits_per_byte": float(bits.mean()),
        "greedy": float(greedy(table).mean()),
        "stderr": standard_error(bits, layout_of(table, groups)),
        "nan": 0,  # one raises NonFiniteError
    }


def with_measures(table: pa.Table, kind: TaskKind = "ranked") -> pa.Table:
    """Add a column for each measure to a table: a question's value at its first candidate, else null."""
    starts, found = check_items(table, kind).starts, choice_measures(table, kind)
    for name in MEASURES:
        column = np.full(table.num_rows, np.nan)
        column[starts] = found.get(name, np.nan)
        table = table.append_column(name, pa.array(column, from_pandas=True))
    return table


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


def _brier(scores: Mapping[str, Floats], gold: NDArray[np.bool_], groups: Groups) -> Floats:
    """Return the squared distances from the right answer."""
    right = np.add.reduceat(gold.astype(np.float64), groups.starts)
    wanted = gold / np.repeat(right, groups.sizes)
    distance = (_softmax(scores["raw"], groups) - wanted) ** 2
    total: Floats = np.add.reduceat(distance, groups.starts)
    return total


def _calibration(scores: Mapping[str, Floats], gold: NDArray[np.bool_], groups: Groups) -> Floats:
    """Return what each question adds to the expected calibration error."""
    shares = _softmax(scores["raw"], groups)
    confidence = np.maximum.reduceat(shares, groups.starts)
    gap = credit_items(scores["raw"], gold, groups).credit - confidence
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    signs = np.sign(np.bincount(place, weights=gap, minlength=BINS))
    return np.asarray(signs[place] * gap, dtype=np.float64)


_FORMULAS: Mapping[str, Formula] = {
    "gold_bits_per_byte": _bits,
    "correct_probability": _probability,
    "gold_margin": lambda scores, gold, groups: margins(scores["per_char"], gold, groups),
    "brier_score": _brier,
    "calibration_error": _calibration,
}
"""A formula for each secondary metric of Tier3."""

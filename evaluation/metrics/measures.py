"""What is measured on questions, from a table of their candidates' log-probabilities; needs no model.

Five ways to compare candidates of different length (names of lm-evaluation-harness in brackets):

    raw        the sum of the log-probabilities (acc)
    per_char   divided by the characters of the candidate's text, without a leading space (acc_norm)
    per_byte   divided by its UTF-8 bytes (acc_bytes)
    per_token  divided by its tokens
    pmi        minus the log-probability after the unconditional context

A question whose right candidate shares the best score with others counts 1/k for k such candidates, the
expected value of a random choice among them. So neither order nor repetition of candidates raises it.

Two measures change with every question, where an accuracy changes only with its outcome. For a question with
log-probabilities l_c (sums over the tokens of candidate c, in nats) and the right answer g:

    gold_bits_per_byte    -l_g / (ln 2 * bytes of g): what the right answer costs, whatever the others
                          do (Magnusson et al., DataDecide, arXiv 2504.11393; Heineman et al., Signal
                          and Noise, arXiv 2508.13144)
    correct_probability   exp(l_g) / sum_c exp(l_c): the softmax over the sums themselves

Where several candidates are right, the best of them counts, and their probabilities add up. Where only the
right answer is scored, there is only the first of these measures, and

    greedy                1 if every token of the right answer is the most likely one, else 0
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats
from evaluation.settings.tiers import TIERS, TaskKind

MEASURES = tuple(metric.name for metric in TIERS["tier3"].secondary)

LENGTHS = {"per_char": "chars", "per_byte": "bytes", "per_token": "tokens"}


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What was measured on the questions of a task, (questions,) each.

    `starts` and `sizes` are the first row and the number of rows of each question. `credits` are by the way
    of comparing candidates, none where only right answers are scored; `measures` are by the metric.
    """

    kind: TaskKind
    ids: list[str]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    layout: Layout
    credits: Mapping[str, Floats]
    measures: Mapping[str, Floats]
    ties: int = 0

    def ranked_by(self, primary: str) -> Floats:
        """Return the credits by the primary way; raise ScoringError where there are none."""
        if primary not in self.credits:
            raise ScoringError(
                f"the primary metric {primary} cannot be computed: no unconditional candidates were "
                "scored; set `unconditional_context` and run again"
            )
        return self.credits[primary]


@dataclass(frozen=True)
class _Ranked:
    """Scores of candidates by the way of comparing them and whether each is right, (rows,)."""

    scores: Mapping[str, Floats]
    gold: NDArray[np.bool_]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def best(self, scores: Floats) -> Floats:
        """Return each question's highest score, (questions,)."""
        highest: Floats = np.maximum.reduceat(scores, self.starts)
        return highest

    def credit(self, way: str) -> tuple[Floats, NDArray[np.bool_]]:
        """Return each question's credit, and whether candidates share its best score."""
        is_best = self.scores[way] == np.repeat(self.best(self.scores[way]), self.sizes)
        winners = np.add.reduceat(is_best.astype(np.int64), self.starts)
        right = np.add.reduceat((is_best & self.gold).astype(np.int64), self.starts)
        return right / winners, winners > 1

    def bits(self) -> Floats:
        """Return what the right candidate costs, in bits per byte."""
        return -self.best(np.where(self.gold, self.scores["per_byte"], -np.inf)) / math.log(2)

    def probability(self) -> Floats:
        """Return the right candidates' share of all probability; the largest is subtracted before exp."""
        raw = self.scores["raw"]
        weights = np.exp(raw - np.repeat(self.best(raw), self.sizes))
        right = np.add.reduceat(np.where(self.gold, weights, 0.0), self.starts)
        shares: Floats = right / np.add.reduceat(weights, self.starts)
        return shares


_FORMULAS: Mapping[str, Callable[[_Ranked], Floats]] = {
    "gold_bits_per_byte": _Ranked.bits,
    "correct_probability": _Ranked.probability,
}
"""A formula for each secondary metric of Tier3."""


def measure_questions(table: pa.Table, kind: TaskKind = "ranked") -> Questions:
    """Measure each question of a table of candidates, of which each question's rows stand together.

    Raises:
        NonFiniteError: A log-probability is NaN or infinite; it names the item.
        ScoringError: There are no items, or one cannot be measured; it names the item.
    """
    names = table["item"].to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1])) if len(names) else names
    sizes = np.diff(np.append(starts, len(names))).astype(np.int64)
    ids = table["item"].take(starts.astype(np.int64)).to_pylist()
    gold = table["gold"].to_numpy(zero_copy_only=False)
    _check(ids, gold, starts, sizes, kind)
    ranked = _Ranked(candidate_scores(table), gold, starts, sizes)
    about = {"ids": ids, "starts": starts, "sizes": sizes, "layout": _layout(table, starts)}
    if kind == "gold":
        if table["is_greedy"].null_count:
            raise ScoringError("whether an answer is greedy is not stored; score it again")
        greedy = table["is_greedy"].to_numpy(zero_copy_only=False).astype(np.float64)
        measures = {"gold_bits_per_byte": ranked.bits(), "greedy": greedy}
        return Questions(kind=kind, credits={}, measures=measures, **about)
    outcomes = {way: ranked.credit(way) for way in ranked.scores}
    return Questions(
        kind=kind,
        credits={way: credit for way, (credit, _) in outcomes.items()},
        measures={name: _FORMULAS[name](ranked) for name in MEASURES},
        ties=int(outcomes["raw"][1].sum()),
        **about,
    )


def summarize_questions(questions: Questions, primary: str) -> dict[str, Any]:
    """Return a task's accuracies by every way of comparing, the headline by `primary`, and its measures.

    `centered` is 0 at chance and 1 if all are right: (accuracy - chance) / (1 - chance).

    Raises:
        ScoringError: There is nothing to compute the primary from.
    """
    measures = {name: float(values.mean()) for name, values in questions.measures.items()}
    if questions.kind == "gold":
        return {"kind": "gold", **measures}
    accuracy = float(questions.ranked_by(primary).mean())
    chance = float((1 / questions.sizes).mean())
    return {
        "accuracy": accuracy,
        "primary": primary,
        "metrics": {way: float(credit.mean()) for way, credit in questions.credits.items()},
        "centered": (accuracy - chance) / (1 - chance),
        "chance": chance,
        "ties": questions.ties,
        **measures,
    }


def candidate_scores(table: pa.Table) -> dict[str, Floats]:
    """Return the scores that rank candidates, (rows,), for each way of comparing whose columns exist."""
    logprob = _finite(table, "logprob")
    scores = {"raw": logprob}
    for way, column in LENGTHS.items():
        lengths = table[column].to_numpy()
        if len(empty := np.flatnonzero(lengths < 1)):
            raise ScoringError(
                f"{_name(table, empty[0])} has no {column} to divide its log-probability by; leave "
                "empty candidates out"
            )
        scores[way] = logprob / lengths
    if table["unconditional"].null_count == 0:
        scores["pmi"] = logprob - _finite(table, "unconditional")
    return scores


def _layout(table: pa.Table, starts: NDArray[np.int64]) -> Layout:
    """Return how the questions depend on one another; programs' tables may lack the columns for it."""

    def names(column: str) -> list[Any] | None:
        is_there = column in table.column_names
        return table[column].take(starts).to_pylist() if is_there else None

    clusters, strata = (
        found if found and None not in found else None
        for found in map(names, ("cluster", "stratum"))
    )
    sources = [found for found in map(names, ("question", "row")) if found is not None]
    return Layout(len(starts), clusters, strata, sources)


def _check(
    ids: list[str],
    gold: NDArray[np.bool_],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    kind: TaskKind,
) -> None:
    """Raise ScoringError for the first question that cannot be measured, or if there are none."""
    if not ids:
        raise ScoringError("the task has no items; check its cache and `limit`")
    if len(set(ids)) < len(ids):
        raise ScoringError(
            "the candidates of an item do not stand together, or an id appears twice"
        )
    right = np.add.reduceat(gold.astype(np.int64), starts)
    faults = {
        "it has no right candidate; write its candidates again": right == 0,
        "one candidate leaves nothing to choose; leave it out": (sizes < 2) & (kind == "ranked"),
        "all of its candidates are right; leave it out": (right == sizes) & (kind == "ranked"),
        "there are candidates besides the right answer": (sizes > 1) & (kind == "gold"),
    }
    for fault, is_wrong in faults.items():
        if is_wrong.any():
            raise ScoringError(f"{ids[int(np.argmax(is_wrong))]}: {fault}")


def _finite(table: pa.Table, column: str) -> Floats:
    values: Floats = table[column].to_numpy()
    if len(broken := np.flatnonzero(~np.isfinite(values))):
        raise NonFiniteError(
            f"{_name(table, broken[0])}: {len(broken)} of {len(values)} log-probabilities are NaN or "
            "infinite; the model's weights may be damaged"
        )
    return values


def _name(table: pa.Table, row: int) -> str:
    return f"{table['item'][row]}, candidate {table['candidate'][row]}"

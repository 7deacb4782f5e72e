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
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats
from evaluation.settings.tiers import TIERS, TaskKind

MEASURES = tuple(metric.name for metric in TIERS["tier3"].secondary)

LENGTHS = {"per_char": "chars", "per_byte": "bytes", "per_token": "tokens"}


class Questions(NamedTuple):
    """What was measured on the questions of a task, (questions,) each.

    `credits` are by the way of comparing candidates, none where only right answers are scored; `measures`
    are by the metric. `ties` counts the questions whose best score several candidates share.
    """

    kind: TaskKind
    ids: list[str]
    sizes: NDArray[np.int64]
    layout: Layout
    credits: Mapping[str, Floats]
    measures: Mapping[str, Floats]
    ties: int = 0


def measure_questions(table: pa.Table, kind: TaskKind = "ranked") -> Questions:
    """Measure each question of a table of candidates, of which each question's rows stand together.

    Raises:
        NonFiniteError: A log-probability is NaN or infinite; it names the item.
        ScoringError: A candidate has no length to divide by; it names the item.
    """
    names = table["item"].to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))[: len(names)]
    sizes, first = np.diff(np.append(starts, len(names))), table.take(starts)
    gold = table["gold"].to_numpy(zero_copy_only=False)
    ids = first["item"].to_pylist()
    columns = (first[key].to_pylist() for key in ("cluster", "stratum", "question", "row"))
    cluster, stratum, *sources = columns
    clusters, strata = (None if None in names else names for names in (cluster, stratum))
    layout = Layout(len(ids), clusters, strata, sources)
    scores = candidate_scores(table)

    def best(values: Floats) -> Floats:
        highest: Floats = np.maximum.reduceat(values, starts)
        return highest

    bits = -best(np.where(gold, scores["per_byte"], -np.inf)) / math.log(2)
    if kind == "gold":
        if table["is_greedy"].null_count:
            raise ScoringError("whether an answer is greedy is not stored; score it again")
        greedy = table["is_greedy"].to_numpy(zero_copy_only=False).astype(np.float64)
        measures = {"gold_bits_per_byte": bits, "greedy": greedy}
        return Questions(kind, ids, sizes, layout, {}, measures)
    weights = np.exp(scores["raw"] - np.repeat(best(scores["raw"]), sizes))
    right = np.add.reduceat(np.where(gold, weights, 0.0), starts)
    probability = right / np.add.reduceat(weights, starts)
    is_best = {way: one == np.repeat(best(one), sizes) for way, one in scores.items()}
    winners = {way: np.add.reduceat(one.astype(np.int64), starts) for way, one in is_best.items()}
    credits = {
        way: np.add.reduceat((one & gold).astype(np.int64), starts) / winners[way]
        for way, one in is_best.items()
    }
    measures = {"gold_bits_per_byte": bits, "correct_probability": probability}
    return Questions(kind, ids, sizes, layout, credits, measures, int((winners["raw"] > 1).sum()))


def summarize_questions(questions: Questions, primary: str) -> dict[str, Any]:
    """Return a task's accuracies by every way of comparing, the headline by `primary`, and its measures.

    `centered` is 0 at chance and 1 if all are right: (accuracy - chance) / (1 - chance).

    Raises:
        ScoringError: There is nothing to compute the primary from.
    """
    measures = {name: float(values.mean()) for name, values in questions.measures.items()}
    if questions.kind == "gold":
        return {"kind": "gold", **measures}
    if primary not in questions.credits:
        raise ScoringError(
            f"the primary metric {primary} cannot be computed: no unconditional candidates were "
            "scored; set `unconditional_context` and run again"
        )
    accuracy = float(questions.credits[primary].mean())
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

"""Accuracies from a table of candidates' log-probabilities; needs neither model nor torch.

Five ways to compare candidates of different length (names of lm-evaluation-harness in brackets):

    raw        the sum of the log-probabilities (acc)
    per_char   divided by the characters of the candidate's text, without a leading space (acc_norm)
    per_byte   divided by its UTF-8 bytes (acc_bytes)
    per_token  divided by its tokens
    pmi        minus the log-probability after the unconditional context

An item whose gold candidate shares the best score with others counts 1/k for k such candidates, the
expected value of a random choice among them. So neither order nor repetition of candidates raises it.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats
from evaluation.settings.tiers import TaskKind


class Outcomes(NamedTuple):
    """For each item: its credit in [0, 1], and whether candidates share the best score."""

    credit: Floats
    tied: NDArray[np.bool_]


class Groups(NamedTuple):
    """Items of a table in which each item's rows are contiguous: first row and number of rows, (items,)."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


def group_items(table: pa.Table) -> Groups:
    """Find where each item's rows begin, which stand together, and how many there are."""
    ids = table["item"].to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.array([], int)
    return Groups(starts, np.diff(np.append(starts, len(ids))))


def candidate_scores(table: pa.Table) -> dict[str, Floats]:
    """Return the scores that rank candidates, (rows,), for each way of comparing whose columns exist.

    Raises:
        NonFiniteError: A log-probability is NaN or infinite; it names the item.
        ScoringError: A candidate has no length to divide by; it names the item.
    """
    logprob = _finite(table, "logprob")
    scores = {"raw": logprob}
    for name, column in (("per_char", "chars"), ("per_byte", "bytes"), ("per_token", "tokens")):
        lengths = table[column].to_numpy()
        empty = np.flatnonzero(lengths < 1)
        if len(empty):
            raise ScoringError(
                f"{_name(table, empty[0])} has no {column} to divide its log-probability by; leave "
                "empty candidates out"
            )
        scores[name] = logprob / lengths
    if table["unconditional"].null_count == 0:
        scores["pmi"] = logprob - _finite(table, "unconditional")
    return scores


def credit_items(scores: Floats, gold: NDArray[np.bool_], groups: Groups) -> Outcomes:
    """Credit each item, (items,), whose gold candidate scores highest; scores and gold are (rows,)."""
    best = np.repeat(np.maximum.reduceat(scores, groups.starts), groups.sizes)
    is_best = scores == best
    winners = np.add.reduceat(is_best.astype(np.int64), groups.starts)
    right = np.add.reduceat((is_best & gold).astype(np.int64), groups.starts)
    return Outcomes(right / winners, winners > 1)


def layout_of(table: pa.Table, groups: Groups) -> Layout:
    """Return how the items of a table depend on one another; older tables lack the columns for it."""

    def names(column: str) -> list[str | None]:
        taken: list[str | None] = table[column].take(groups.starts).to_pylist()
        return taken

    is_known = {
        c: c in table.column_names and not table[c].null_count for c in ("cluster", "stratum")
    }
    clusters, strata = (names(c) if is_known[c] else None for c in is_known)
    sources = [names(c) for c in ("question", "row") if c in table.column_names]
    return Layout(len(groups.starts), clusters, strata, sources)  # type: ignore[arg-type]


def check_items(table: pa.Table, kind: TaskKind) -> Groups:
    """Check that the items of a table can be measured, and return them.

    Raises:
        ScoringError: There are none, or one has too few or too many candidates.
        NonFiniteError: A log-probability is NaN or infinite; it names the item.
    """
    groups = group_items(table)
    if not len(groups.starts):
        raise ScoringError("the task has no items; check its cache and `limit`")
    ids = table["item"].take(groups.starts).to_pylist()
    if len(set(ids)) < len(ids):
        raise ScoringError(
            "the candidates of an item do not stand together, or an id appears twice; write them again"
        )
    is_wrong = groups.sizes < 2 if kind == "ranked" else groups.sizes > 1
    if is_wrong.any():
        wrong = (
            "one candidate leaves nothing to choose; leave it out"
            if kind == "ranked"
            else "there are candidates besides the right answer; score it again"
        )
        raise ScoringError(f"{ids[int(np.argmax(is_wrong))]}: {wrong}")
    _finite(table, "logprob")
    return groups


def _finite(table: pa.Table, column: str) -> Floats:
    values: Floats = table[column].to_numpy()
    broken = np.flatnonzero(~np.isfinite(values))
    if len(broken):
        raise NonFiniteError(
            f"{_name(table, broken[0])}: {len(broken)} of {len(values)} log-probabilities are NaN or "
            "infinite; the model's weights may be damaged"
        )
    return values


def _name(table: pa.Table, row: int) -> str:
    return f"{table['item'][row]}, candidate {table['candidate'][row]}"

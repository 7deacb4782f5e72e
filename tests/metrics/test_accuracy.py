"""Accuracy and other measures of questions from log-probabilities, by hand and against scipy."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.grading.tiers import SCHEMA
from evaluation.metrics.layout import Layout
from evaluation.metrics.measures import MEASURES, measure_questions, with_measures
from evaluation.metrics.variance import standard_error
from evaluation.settings.tiers import TIERS
from tests.metrics.summaries import choice_measures, summarize_choices


def table_of(*items: dict) -> pa.Table:
    """Rows of items given as lists by column; lengths default to 1."""
    rows = []
    for number, item in enumerate(items):
        count = len(item["logprob"])
        same = {"item": item.get("item", f"task/{number}"), "cluster": item.get("cluster")}
        given = {name: item.get(name, [1] * count) for name in ("tokens", "chars", "bytes")}
        given |= {
            "logprob": item["logprob"],
            "unconditional": item.get("unconditional", [None] * count),
        }
        for i in range(count):
            own = {name: values[i] for name, values in given.items()}
            gold = i == item.get("gold", 0)
            rows.append({**same, "candidate": i, "gold": gold, "is_greedy": False, **own})
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_each_normalization_divides_by_its_own_length():
    table = table_of(
        {
            "logprob": [-4.0, -3.0, -6.0],
            "chars": [8, 1, 1],  # -0.5 -3 -6: candidate 0
            "bytes": [1, 6, 1],  # -4 -0.5 -6: candidate 1
            "tokens": [1, 1, 60],  # -4 -3 -0.1: candidate 2
            "unconditional": [-8.0, -3.0, -6.5],  # 4 0 0.5: candidate 0
        }
    )
    summary = summarize_choices(table, "per_char")
    assert summary["metrics"] == {
        "raw": 0.0,
        "per_char": 1.0,
        "per_byte": 0.0,
        "per_token": 0.0,
        "pmi": 1.0,
    }
    assert summary["accuracy"] == 1.0
    assert summary["primary"] == "per_char"
    assert summary["stderr"] is None


def test_accuracy_is_centred_on_chance():
    table = table_of(
        {"logprob": [-1.0, -2.0]}, {"logprob": [-1.0, -2.0, -3.0, -4.0]}, {"logprob": [-2.0, -1.0]}
    )
    summary = summarize_choices(table, "raw")
    chance = (1 / 2 + 1 / 4 + 1 / 2) / 3
    assert summary["accuracy"] == pytest.approx(2 / 3)
    assert summary["chance"] == pytest.approx(chance)
    assert summary["centered"] == pytest.approx((2 / 3 - chance) / (1 - chance))
    assert summary["stderr"] == pytest.approx(np.std([1, 1, 0], ddof=1) / math.sqrt(3))
    assert (summary["items"], summary["ties"], summary["nan"]) == (3, 0, 0)
    assert "pmi" not in summary["metrics"]


def error_of(credit: np.ndarray, *groups: Sequence[str] | None) -> float | None:
    return standard_error(credit, Layout(len(credit), *groups).groups)


def test_clusters_that_agree_by_chance_do_not_make_a_mean_sure():
    credit, names = np.array([1.0, 0, 1, 0]), ["a", "a", "b", "b"]
    assert error_of(credit, names) == pytest.approx(error_of(credit, None))


def test_lone_items_of_strata_are_taken_together():
    credit = np.array([1.0, 0, 1, 0])
    assert error_of(credit, None, list("abcd")) == pytest.approx(error_of(credit))


def test_clusters_within_strata_are_counted_about_their_stratum():
    """Two subjects that differ, in each two passages that do not."""
    credit = np.array([1.0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0])
    strata, clusters = ["a"] * 4 + ["b"] * 8, [str(i // 2) for i in range(4)] * 3
    of_passages = [s + c for s, c in zip(strata, clusters, strict=True)]
    alone = error_of(credit, None, strata)
    assert error_of(credit, clusters, strata) >= alone
    assert error_of(credit, of_passages, strata) >= alone


def test_clusters_of_a_task_are_used():
    items = [
        {"logprob": [-1.0, -2.0], "cluster": name, "gold": g}
        for name, g in zip("aabb", (0, 0, 1, 1), strict=True)
    ]
    assert summarize_choices(table_of(*items), "raw")["stderr"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([{"logprob": [-1.0, float("nan")]}], NonFiniteError, r"task/0, candidate 1: 1 of 2"),
        ([{"logprob": [-1.0, -math.inf]}], NonFiniteError, r"task/0, candidate 1"),
        ([{"logprob": [-1.0]}], ScoringError, "task/0: one candidate"),
        ([{"logprob": [-1.0, -2.0], "chars": [1, 0]}], ScoringError, "candidate 1 has no chars"),
        ([{"logprob": [-1.0, -2.0]}], ScoringError, "pmi cannot be computed"),
        ([], ScoringError, "no items"),
        (
            [{"logprob": [-1.0, -2.0], "item": name} for name in ("a", "b", "a")],
            ScoringError,
            "do not stand together",
        ),
    ],
)
def test_what_cannot_be_judged_is_named(items, error, message):
    with pytest.raises(error, match=message):
        summarize_choices(table_of(*items), "pmi")


def drawn_items(scores):
    """A few questions of a few candidates."""
    candidates = st.lists(scores, min_size=2, max_size=5)
    one = st.tuples(candidates, st.integers(0, 4)).map(
        lambda drawn: {"logprob": drawn[0], "gold": drawn[1] % len(drawn[0])}
    )
    return st.lists(one, min_size=1, max_size=10)


@given(drawn_items(st.integers(-5, 0).map(float)))
def test_a_tie_is_shared_whatever_the_order_of_candidates(items):
    turned = [
        {"logprob": item["logprob"][::-1], "gold": len(item["logprob"]) - 1 - item["gold"]}
        for item in items
    ]
    forward = summarize_choices(table_of(*items), "raw")
    backward = summarize_choices(table_of(*turned), "raw")
    for measure in MEASURES:  # sums over the candidates in their order
        assert forward.pop(measure) == pytest.approx(backward.pop(measure), abs=1e-12)
    assert forward == backward
    best = [max(item["logprob"]) for item in items]
    wins = [
        (item["logprob"][item["gold"]] == top) / item["logprob"].count(top)
        for item, top in zip(items, best, strict=True)
    ]
    assert forward["accuracy"] == pytest.approx(np.mean(wins))
    ties = [item["logprob"].count(top) > 1 for item, top in zip(items, best, strict=True)]
    assert forward["ties"] == sum(ties)


def test_measures_by_hand():
    """Right answer of 8 bytes and 4 characters at -2 nats; the others at -4 of 8, -1 of 1."""
    one = {"logprob": [-2.0, -4.0, -1.0], "bytes": [8, 8, 1], "chars": [4, 8, 1]}
    found = choice_measures(table_of(one))
    assert {metric.name for metric in TIERS["tier3"].secondary} == found.keys()
    assert found["gold_bits_per_byte"] == pytest.approx([2 / 8 / math.log(2)])


@given(drawn_items(st.floats(-900, 0)))
def test_probabilities_are_scipys_softmax(items):
    found = choice_measures(table_of(*items))
    wanted = [special.softmax(one["logprob"])[one["gold"]] for one in items]
    assert found["correct_probability"] == pytest.approx(wanted)


def test_the_best_of_several_right_answers_counts():
    table = table_of({"logprob": [-2.0, -1.0, -3.0]})
    place = table.column_names.index("gold")
    both = table.set_column(place, "gold", pa.array([True, True, False]))
    found = choice_measures(both)
    assert found["gold_bits_per_byte"] == pytest.approx([1 / math.log(2)])
    assert found["correct_probability"] == pytest.approx([special.softmax([-2, -1, -3])[:2].sum()])


def test_columns_stand_beside_a_questions_first_candidate():
    items = [{"logprob": [-1.0, -2.0]}, {"logprob": [-3.0, -1.0, -2.0], "gold": 2}]
    table = with_measures(table_of(*items), measure_questions(table_of(*items)))
    column = table["gold_bits_per_byte"].to_pylist()
    assert [value is None for value in column] == [False, True, False, True, True]
    bits = choice_measures(table)["gold_bits_per_byte"]
    assert np.array([column[0], column[2]]) == pytest.approx(bits)


def test_what_cannot_be_measured_is_named():
    table = table_of({"logprob": [-1.0, -2.0]})
    table = table.set_column(table.column_names.index("gold"), "gold", pa.array([True, True]))
    with pytest.raises(ScoringError, match="task/0: all of its candidates are right"):
        choice_measures(table)

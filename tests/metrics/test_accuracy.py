"""Accuracy and other measures of questions from log-probabilities, by hand and against scipy."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.grading.texts import CANDIDATE_SCHEMA
from evaluation.metrics.measures import MEASURES, measure_questions, summarize_questions
from evaluation.settings.tiers import TIERS

NORMALIZATIONS = ("raw", "per_char", "per_byte", "per_token", "pmi")


def summarize_choices(table, primary):
    return summarize_questions(measure_questions(table, "ranked"), primary)


def table_of(*items: dict) -> pa.Table:
    """Rows of items given as lists by column; lengths default to 1."""
    rows = []
    for number, item in enumerate(items):
        same = {"item": f"task/{number}", "tokens": 1, "chars": 1, "bytes": 1, "is_greedy": False}
        for i in range(len(item["logprob"])):
            own = {name: v[i] if isinstance(v, list) else v for name, v in item.items()}
            rows.append({**same, **own, "candidate": i, "gold": i == item.get("gold", 0)})
    return pa.Table.from_pylist(rows, schema=CANDIDATE_SCHEMA)


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
    right = {"per_char", "pmi"}
    assert summary["metrics"] == {name: float(name in right) for name in NORMALIZATIONS}
    assert summary["accuracy"] == 1.0
    assert summary["primary"] == "per_char"


def test_accuracy_is_centred_on_chance():
    table = table_of(
        {"logprob": [-1.0, -2.0]}, {"logprob": [-1.0, -2.0, -3.0, -4.0]}, {"logprob": [-2.0, -1.0]}
    )
    summary = summarize_choices(table, "raw")
    chance = (1 / 2 + 1 / 4 + 1 / 2) / 3
    assert summary["accuracy"] == pytest.approx(2 / 3)
    assert summary["chance"] == pytest.approx(chance)
    assert summary["centered"] == pytest.approx((2 / 3 - chance) / (1 - chance))
    assert summary["ties"] == 0
    assert "pmi" not in summary["metrics"]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"logprob": [-1.0, float("nan")]}], r"task/0, candidate 1: 1 of 2"),
        ([{"logprob": [-1.0, -2.0], "chars": [1, 0]}], "candidate 1 has no chars"),
        ([{"logprob": [-1.0, -2.0]}], "pmi cannot be computed"),
    ],
)
def test_what_cannot_be_judged_is_named(items, message):
    with pytest.raises((NonFiniteError, ScoringError), match=message):
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
    """The first answer is right; then the second one is right too, and better."""
    table = table_of({"logprob": [-2.0, -1.0, -3.0], "bytes": [8, 8, 1]})
    found = measure_questions(table, "ranked").measures
    assert {metric.name for metric in TIERS["tier3"].secondary} == found.keys()
    assert found["gold_bits_per_byte"] == pytest.approx([2 / 8 / math.log(2)])
    place = table.column_names.index("gold")
    both = measure_questions(
        table.set_column(place, "gold", pa.array([True, True, False])), "ranked"
    ).measures
    assert both["gold_bits_per_byte"] == pytest.approx([1 / 8 / math.log(2)])
    assert both["correct_probability"] == pytest.approx([special.softmax([-2, -1, -3])[:2].sum()])


@given(drawn_items(st.floats(-900, 0)))
def test_probabilities_are_scipys_softmax(items):
    found = measure_questions(table_of(*items), "ranked").measures
    wanted = [special.softmax(one["logprob"])[one["gold"]] for one in items]
    assert found["correct_probability"] == pytest.approx(wanted)

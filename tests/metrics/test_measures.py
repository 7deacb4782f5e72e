"""Measures of questions from log-probabilities, by hand and against scipy."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from evaluation.errors import NonFiniteError, ScoringError
from evaluation.metrics.accuracy import summarize_choices
from evaluation.metrics.measures import choice_measures, with_measures
from evaluation.settings.tiers import TIERS
from tests.metrics.test_accuracy import table_of


def test_by_hand():
    """Right answer of 8 bytes and 4 characters at -2 nats; the others at -4 of 8, -1 of 1."""
    one = {"logprob": [-2.0, -4.0, -1.0], "bytes": [8, 8, 1], "chars": [4, 8, 1]}
    found = choice_measures(table_of(one))
    assert found["gold_bits_per_byte"] == pytest.approx([2 / 8 / math.log(2)])
    assert found["correct_probability"] == pytest.approx(
        [math.exp(-2) / (math.exp(-2) + math.exp(-4) + math.exp(-1))]
    )
    assert found["margin"] == pytest.approx([-2 / 4 - max(-4 / 8, -1 / 1)])


def test_the_tier_describes_what_is_computed():
    found = choice_measures(table_of({"logprob": [-1.0, -2.0]}))
    assert {metric.name for metric in TIERS["tier3"].companions} == found.keys()


@given(
    st.lists(
        st.tuples(st.lists(st.floats(-900, 0), min_size=2, max_size=5), st.integers(0, 4)),
        min_size=1,
        max_size=10,
    )
)
def test_probabilities_are_scipys_softmax(drawn):
    items = [{"logprob": scores, "gold": gold % len(scores)} for scores, gold in drawn]
    found = choice_measures(table_of(*items))
    wanted = [special.softmax(one["logprob"])[one["gold"]] for one in items]
    assert found["correct_probability"] == pytest.approx(wanted)
    summary = summarize_choices(table_of(*items), "raw")
    assert (found["margin"] > 0).mean() <= summary["accuracy"] + 1e-12
    assert summary["accuracy"] <= (found["margin"] >= 0).mean() + 1e-12


def test_the_best_of_several_right_answers_counts():
    table = table_of({"logprob": [-2.0, -1.0, -3.0]})
    place = table.column_names.index("gold")
    both = table.set_column(place, "gold", pa.array([True, True, False]))
    found = choice_measures(both)
    assert found["gold_bits_per_byte"] == pytest.approx([1 / math.log(2)])
    assert found["margin"] == pytest.approx([2.0])
    assert found["correct_probability"] == pytest.approx([special.softmax([-2, -1, -3])[:2].sum()])


def test_columns_stand_beside_a_questions_first_candidate():
    items = [{"logprob": [-1.0, -2.0]}, {"logprob": [-3.0, -1.0, -2.0], "gold": 2}]
    table = with_measures(table_of(*items))
    column = table["margin"].to_pylist()
    assert [value is None for value in column] == [False, True, False, True, True]
    assert np.array([column[0], column[2]]) == pytest.approx(choice_measures(table)["margin"])


@pytest.mark.parametrize(
    ("logprob", "gold", "error", "message"),
    [
        ([-1.0, math.nan], [True, False], NonFiniteError, "task/0, candidate 1"),
        ([-1.0, -2.0], [True, True], ScoringError, "task/0: all of its candidates are right"),
    ],
)
def test_what_cannot_be_measured_is_named(logprob, gold, error, message):
    table = table_of({"logprob": logprob})
    table = table.set_column(table.column_names.index("gold"), "gold", pa.array(gold))
    with pytest.raises(error, match=message):
        choice_measures(table)

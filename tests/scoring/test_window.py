import pytest

from evaluation.errors import ScoringError
from evaluation.scoring.engine.window import Request, fit_requests


def fit(context, continuation, max_length=6, prefix_token=9):
    fitted = fit_requests(
        [Request(context, continuation, "arc/3, candidate 1")],
        max_length=max_length,
        prefix_token=prefix_token,
    )
    return fitted.requests[0].context, fitted.requests[0].continuation, fitted.truncated


def test_fitting_requests_are_left_alone():
    assert fit((0, 1, 2, 3), (4, 5, 6)) == ((0, 1, 2, 3), (4, 5, 6), 0)


def test_long_contexts_lose_their_left_end():
    """As in lm-evaluation-harness: (context + continuation)[-(max_length + 1):]."""
    assert fit((0, 1, 2, 3, 4), (5, 6, 7)) == ((1, 2, 3, 4), (5, 6, 7), 1)


def test_a_continuation_may_fill_the_window():
    assert fit((0, 1), (2, 3, 4, 5, 6, 7)) == ((1,), (2, 3, 4, 5, 6, 7), 1)


def test_an_empty_context_becomes_the_prefix_token():
    assert fit((), (4, 5)) == ((9,), (4, 5), 0)


def test_a_continuation_that_begins_with_the_prefix_token_gets_no_second_one():
    assert fit((), (9, 4)) == ((9,), (4,), 0)


@pytest.mark.parametrize(
    ("context", "continuation", "message"),
    [
        ((1,), (), "is empty"),
        ((), (9,), "prefix token alone"),
        ((1,), (1, 2, 3, 4, 5, 6, 7), "has 7 tokens, more than the context window of 6"),
    ],
)
def test_what_cannot_be_scored_is_named(context, continuation, message):
    with pytest.raises(ScoringError, match=f"arc/3, candidate 1: .*{message}"):
        fit(context, continuation)

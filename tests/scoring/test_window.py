import pytest

from evaluation.errors import ScoringError
from evaluation.scoring.window import Request, Window


def fit(context, continuation, max_length=6, prefix_token=9):
    request = Request(context, continuation, "arc/3, candidate 1")
    fitted, is_truncated = Window(max_length, prefix_token, bos=8).fit(request)
    return fitted.context, fitted.continuation, is_truncated


FITTED = {
    "it fits": ((0, 1, 2, 3), (4, 5, 6), (0, 1, 2, 3), (4, 5, 6), 0),
    "the left end is cut": ((0, 1, 2, 3, 4), (5, 6, 7), (1, 2, 3, 4), (5, 6, 7), 1),
    "BOS stays": ((8, 1, 2, 3, 4), (5, 6, 7), (8, 2, 3, 4), (5, 6, 7), 1),
    "a continuation fills the window": ((0, 1), (2, 3, 4, 5, 6, 7), (1,), (2, 3, 4, 5, 6, 7), 1),
    "no context": ((), (4, 5), (9,), (4, 5), 0),
    "no context before the prefix token": ((), (9, 4), (9,), (4,), 0),
}


@pytest.mark.parametrize("name", FITTED)
def test_requests_are_fitted_into_the_window(name):
    """As in lm-evaluation-harness: (context + continuation)[-(max_length + 1):]."""
    context, continuation, *expected = FITTED[name]
    assert fit(context, continuation) == tuple(expected)


@pytest.mark.parametrize(
    ("context", "continuation", "message"),
    [
        ((1,), (), "nothing to score"),
        ((), (9,), "nothing to score"),
        ((1,), (1, 2, 3, 4, 5, 6, 7), "has 7 tokens, more than the context window of 6"),
    ],
)
def test_what_cannot_be_scored_is_named(context, continuation, message):
    with pytest.raises(ScoringError, match=f"arc/3, candidate 1: .*{message}"):
        fit(context, continuation)

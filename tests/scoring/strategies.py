"""Requests that share prefixes, repeat each other and end inside each other."""

from hypothesis import strategies as st

from evaluation.scoring.engine.window import Request


def token_lists(largest: int, longest: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, largest), min_size=1, max_size=longest).map(tuple)


def requests(
    largest: int = 2, longest: int = 6, most: int = 12
) -> st.SearchStrategy[list[Request]]:
    """Few tokens, so that prefixes meet often; some requests begin with all of another."""
    tokens = token_lists(largest, longest)
    single = st.builds(Request, tokens, tokens)
    return st.lists(single, min_size=1, max_size=most).flatmap(_extended)


def _extended(drawn: list[Request]) -> st.SearchStrategy[list[Request]]:
    longer = [Request(r.context + r.continuation, (1, 0)) for r in drawn]
    return st.lists(st.sampled_from(drawn + longer), max_size=4).map(lambda more: drawn + more)

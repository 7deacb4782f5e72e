"""Requests that share prefixes, repeat each other and end inside each other."""

import numpy as np
from hypothesis import strategies as st

from evaluation.scoring.window import Request
from tests.scoring import tiny


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


def random_requests(count: int = 24, seed: int = 5, trunk: int = 200) -> list[Request]:
    """Contexts that leave a trunk of so many tokens anywhere, each to go its own way."""
    random = np.random.default_rng(seed)
    shared = random.integers(0, tiny.VOCABULARY, trunk)
    asked = []
    for _ in range(count):
        own = random.integers(0, tiny.VOCABULARY, random.integers(3, 40))
        tokens = tuple(map(int, np.append(shared[: random.integers(1, trunk)], own)))
        asked.append(Request(tokens[:-2], tokens[-2:]))
    return asked

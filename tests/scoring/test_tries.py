import itertools
import os

from hypothesis import given
from hypothesis import strategies as st

from evaluation.scoring.engine.tries import Trie, build_trie, key_of, pack
from tests.scoring.strategies import token_lists


def trie_of(*inputs: tuple[int, ...]) -> Trie:
    return build_trie([key_of(tokens) for tokens in inputs])


def trie_size(inputs: set[tuple[int, ...]]) -> int:
    return len({tokens[:n] for tokens in inputs for n in range(1, len(tokens) + 1)})


@given(st.lists(token_lists(2, 9), min_size=1, max_size=20))
def test_neighbours_know_how_many_tokens_they_share(drawn):
    """Sorted by token, also by those of several bytes; none appears twice."""
    asked = [tuple((2, 300, 70_000)[token] for token in tokens) for tokens in drawn]
    trie = trie_of(*asked)
    inputs = [tuple(trie.input(i)) for i in range(len(trie))]
    assert inputs == sorted(set(asked))
    assert [inputs[place] for place in trie.place] == asked
    for i, (before, here) in enumerate(itertools.pairwise(inputs), start=1):
        assert trie.shared[i] == len(os.path.commonprefix([before, here]))  # noqa: RUF071


@given(st.lists(token_lists(2, 8), min_size=1, max_size=30), st.integers(1, 40), st.integers(0, 3))
def test_pieces_hold_every_input_once_and_keep_their_capacity(inputs, budget, growth):
    trie = trie_of(*inputs)
    pieces = pack(trie, lambda shared: budget + growth * shared)
    assert sorted(itertools.chain(*(piece.members for piece in pieces))) == list(range(len(trie)))
    for piece in pieces:
        held = {tuple(map(int, trie.input(member))) for member in piece.members}
        assert piece.size == trie_size(held)
        common = len(os.path.commonprefix(list(held)))  # noqa: RUF071  (of tuples)
        assert len(held) == 1 or piece.size <= budget + growth * common


def test_best_fit_fills_the_smallest_gap_that_is_enough():
    """Pieces 7, 6, 4, 3 with room for 10: 7 + 3 and 6 + 4, where first-fit of 3 could go wrong."""
    inputs = [tuple([first] * length) for first, length in enumerate((6, 7, 3, 4))]
    assert sorted(piece.size for piece in pack(trie_of(*inputs), lambda _: 10)) == [10, 10]

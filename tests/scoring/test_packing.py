"""Rows hold every sequence once, as its own tokens see it, and no more than they may."""

import itertools
import os

from hypothesis import given
from hypothesis import strategies as st

from evaluation.scoring.engine.packing import PackedRows, group_rows, key_of
from tests.scoring.strategies import token_lists


def sizes(inputs: list[tuple[int, ...]]) -> int:
    """Tokens of a trie of inputs."""
    return len({tokens[:n] for tokens in inputs for n in range(1, len(tokens) + 1)})


@given(st.lists(token_lists(2, 8), min_size=1, max_size=30), st.integers(1, 40), st.integers(0, 3))
def test_rows_hold_every_sequence_once_and_keep_their_capacity(drawn, budget, growth):
    """Also tokens of several bytes; what is alone in its row may be longer."""
    asked = [tuple((2, 300, 70_000)[token] for token in tokens) for tokens in drawn]
    targets = [tokens[-1 - len(tokens) % 2 :] for tokens in asked]
    sequences = [(key_of(one), key_of(end)) for one, end in zip(asked, targets, strict=True)]
    packed = PackedRows(sequences, lambda shared: budget + growth * shared)
    found = {}
    for index, length in enumerate(packed.lengths):
        batch = packed.batch([index], length + 3)
        owners = sorted({*batch.owner.tolist()})
        held = sorted({asked[owner] for owner in owners})
        assert length == sizes(held)
        assert batch.tokens.shape == (1, length + 3)
        shared = [len(os.path.commonprefix(pair)) for pair in itertools.pairwise(held)]  # noqa: RUF071
        assert len(held) == 1 or length <= budget + growth * max(shared)
        assert batch.is_causal == (len(max(held, key=len)) == length)
        for owner in owners:
            own = batch.owner == owner
            row, path = batch.path(int(batch.query[own].max()))
            assert batch.position[own].max() == len(path)
            found[owner] = (
                tuple(batch.tokens[row, path].tolist()),
                tuple(batch.target[own].tolist()),
            )
    assert found == dict(enumerate(zip(asked, targets, strict=True)))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 200))
def test_groups_hold_each_row_once_and_fit_when_padded(lengths, tokens):
    groups = group_rows(lengths, tokens)
    assert sorted(itertools.chain(*groups)) == list(range(len(lengths)))
    longest = [max(lengths[i] for i in group) for group in groups]
    assert longest == sorted(longest, reverse=True)
    for group, length in zip(groups, longest, strict=True):
        assert len(group) == 1 or length * len(group) <= tokens

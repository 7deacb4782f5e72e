"""Which prefixes prompts have in common, so that they are read once: few-shot examples, preambles."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

Tokens = tuple[int, ...]

_WORTH = 32
"""Tokens from which on a common prefix is read once; a shorter one costs each step more than it saves."""

_DEEPEST = 20  # splits of splits; a prompt that is the beginning of the next, and so on, has many


class Family(NamedTuple):
    """Indices of prompts, in the order of their tokens, and how many tokens they have in common."""

    shared: int
    members: tuple[int, ...]

    @property
    def saved(self) -> int:
        """Tokens that are not read again."""
        return self.shared * (len(self.members) - 1)


def families(prompts: Sequence[Tokens]) -> list[Family]:
    """Return all prompts, each once, split so that sharing a prefix for each family saves the most tokens.

    Of every prompt at least the last token is its own, for its answer begins there.
    """
    order = sorted(range(len(prompts)), key=prompts.__getitem__)
    return _split(prompts, tuple(order)) if order else []


def _split(prompts: Sequence[Tokens], members: tuple[int, ...], depth: int = 0) -> list[Family]:
    """Split members, which are sorted, so that the first and the last differ the most."""
    if len(members) == 1:
        return [Family(0, members)]
    first, last = prompts[members[0]], prompts[members[-1]]
    common = _common(first, last)
    shared = min(common, len(first) - 1)
    if common == len(last) or depth == _DEEPEST:
        return [_family(shared, members)]
    own = [_family(shared, members)]
    parts = [
        tuple(part)
        for _, part in itertools.groupby(members, lambda index: prompts[index][common : common + 1])
    ]
    deeper = [family for part in parts for family in _split(prompts, part, depth + 1)]
    return deeper if sum(f.saved for f in deeper) > sum(f.saved for f in own) else own


def _common(one: Tokens, other: Tokens) -> int:
    """Count the tokens at the beginning that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _family(shared: int, members: tuple[int, ...]) -> Family:
    return Family(shared if shared >= _WORTH else 0, members)

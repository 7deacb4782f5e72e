"""Compares expressions by their values at several points, and equations by their solutions."""

import random
from collections.abc import Sequence
from fractions import Fraction

from evaluation.reading.formula_tokens import Tree
from evaluation.verification.values import Undefined, Value, evaluate, quotient, same

Point = dict[str, Fraction]
"""Values of variables."""

CONSTANTS = frozenset("πei∞")
"""Names that are no variables."""
_POINTS = 6
_NEEDED = 3
"""Points at which both expressions must be defined."""


def identical(left: Tree, right: Tree) -> bool:
    """Return whether two expressions agree at every point where both are defined."""
    names = sorted((names_in(left) | names_in(right)) - CONSTANTS)
    if not names:
        return _agreement(left, right, [{}], needed=1) is True
    drawn = random.Random(0)
    anywhere = [
        {name: Fraction(drawn.choice((-1, 1)) * drawn.randint(2, 90), 17) for name in names}
        for _ in range(_POINTS)
    ]
    if (agreement := _agreement(left, right, anywhere)) is not None:
        return agreement
    drawn = random.Random(1)
    positive = [
        {name: Fraction(drawn.randint(2, scale), 17) for name in names}
        for scale in (90, 90, 90, 17, 17, 17, 400, 400, 400)
    ]
    return _agreement(left, right, positive, is_total=True) is True


def _agreement(
    left: Tree,
    right: Tree,
    points: Sequence[Point],
    *,
    needed: int = _NEEDED,
    is_total: bool = False,
) -> bool | None:
    """Return whether two expressions agree; None if too few points tell.

    Args:
        is_total: Whether they differ, too, where only one is defined.
    """
    agreed = 0
    for point in points:
        values = [_value(tree, point) for tree in (left, right)]
        if None in values:
            if is_total and values != [None, None]:
                return False
        elif same(*values):
            agreed += 1
        else:
            return False
    return True if agreed >= needed else None


def _value(tree: Tree, point: Point) -> Value | None:
    sign = 1
    if tree[0] == "signed":
        tree, sign = tree[1], tree[2]
    try:
        return evaluate(tree, point, sign)
    except Undefined:
        return None


def names_in(tree: Tree) -> set[str]:
    if tree[0] == "name":
        return {tree[1]}
    if tree[0] in ("words", "number"):
        return set()
    return {
        name
        for part in tree
        if isinstance(part, tuple) and part and isinstance(part[0], str)
        for name in names_in(part)
    }


def same_equation(left: Tree, right: Tree) -> bool:
    """Return whether two equations have the same solutions: one is a multiple of the other."""
    sides = [_sides(tree) for tree in (left, right)]
    if sides[0] is None or sides[1] is None:
        return False
    names = sorted(set().union(*(names_in(side) for side in sides if side)) - CONSTANTS)
    drawn = random.Random(2)
    ratios: list[Value] = []
    for _ in range(2 * _POINTS):
        point = {name: Fraction(drawn.randint(-90, 90), 17) for name in names}
        values = [_value(side, point) for side in sides if side]
        if None not in values and 0 not in values:
            ratios.append(quotient(*values))
    return len(ratios) >= _NEEDED and all(same(ratio, ratios[0]) for ratio in ratios)


def _sides(tree: Tree) -> Tree | None:
    """Return the difference of an equation's sides; None if it is not a single equation."""
    if tree[0] == "labelled":
        return ("-", tree[1], tree[2])
    if tree[0] == "relation" and tree[1] == ("=",):
        return ("-", *tree[2])
    return None

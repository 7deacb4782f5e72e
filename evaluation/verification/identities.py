"""Compares expressions by their values at several points, and equations by their solutions."""

import random
from collections.abc import Sequence
from fractions import Fraction

from evaluation.reading.formula_tokens import Tree
from evaluation.verification.values import Undefined, Value, evaluate, same

CONSTANTS = frozenset("πei∞")
"""Names that are no variables."""
_POINTS = 6
_NEEDED = 3
"""Points at which both expressions must be defined."""


def identical(one: Tree, other: Tree) -> bool:
    """Return whether two expressions agree at every point where both are defined."""
    names = sorted((names_in(one) | names_in(other)) - CONSTANTS)
    drawn = random.Random(0)
    agreed = 0
    for _ in range(_POINTS if names else 1):
        point = {name: Fraction(drawn.choice((-1, 1)) * drawn.randint(2, 90), 17) for name in names}
        values = [_value(tree, point) for tree in (one, other)]
        if (values[0] is None) != (values[1] is None) and not names:
            return False
        if values[0] is None or values[1] is None:
            continue
        if not same(values[0], values[1]):
            return False
        agreed += 1
    if agreed >= (_NEEDED if names else 1):
        return True
    return bool(names) and _agree_where_positive(one, other, names)


def _agree_where_positive(one: Tree, other: Tree, names: Sequence[str]) -> bool:
    drawn = random.Random(1)
    agreed = 0
    for scale in (90, 90, 90, 17, 17, 17, 400, 400, 400):
        point = {name: Fraction(drawn.randint(2, scale), 17) for name in names}
        values = [_value(tree, point) for tree in (one, other)]
        if values[0] is None or values[1] is None:
            if (values[0] is None) != (values[1] is None):
                return False
            continue
        if not same(values[0], values[1]):
            return False
        agreed += 1
    return agreed >= _NEEDED


def _value(tree: Tree, point: dict[str, Fraction]) -> Value | None:
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


def same_equation(one: Tree, other: Tree) -> bool:
    """Return whether two equations have the same solutions: one is a multiple of the other."""
    sides = [_sides(tree) for tree in (one, other)]
    if sides[0] is None or sides[1] is None:
        return False
    names = sorted(set().union(*(names_in(side) for side in sides if side)) - CONSTANTS)
    drawn = random.Random(2)
    ratios: list[Value] = []
    for _ in range(2 * _POINTS):
        point = {name: Fraction(drawn.randint(-90, 90), 17) for name in names}
        values = [_value(side, point) for side in sides if side]
        if None in values or 0 in values:
            continue
        ratios.append(_ratio_of(values))
    return len(ratios) >= _NEEDED and all(same(ratio, ratios[0]) for ratio in ratios)


def _ratio_of(values: Sequence[Value]) -> Value:
    if all(isinstance(value, Fraction) for value in values):
        return values[0] / values[1]
    return evaluate(("/", ("name", "a"), ("name", "b")), {"a": values[0], "b": values[1]})


def _sides(tree: Tree) -> Tree | None:
    """Return the difference of an equation's sides; None if it is not a single equation."""
    if tree[0] == "labelled":
        return ("-", tree[1], tree[2])
    if tree[0] == "relation" and tree[1] == ("=",):
        return ("-", *tree[2])
    return None

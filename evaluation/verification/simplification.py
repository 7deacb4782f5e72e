"""Brings the tree of an answer into the form that is compared: labels and brackets around it are removed."""

from collections.abc import Sequence
from fractions import Fraction

from evaluation.reading.formula_tokens import Tree
from evaluation.verification.identities import CONSTANTS, names_in

_TRANSPOSED = (("name", "T"), ("name", "\\top"), ("name", "\\intercal"))
_LABELS = ("angle", "overline", "°", "vec", "hat", "bar", "tilde")


def simplified(tree: Tree) -> Tree:
    """Return a tree without brackets around the whole, labels such as `x =`, and the like."""
    if tree[0] == "group":
        return simplified(tree[1])
    if tree[0] == "relation":
        return _relation(tree)
    if tree[0] == "^" and tree[2] in _TRANSPOSED and tree[1][0] in ("matrix", "tuple", "group"):
        return _transposed(simplified(tree[1]))
    if tree[0] == "set" and len(tree) == 2:
        return simplified(tree[1])
    if tree[0] in ("list", "tuple", "set", "row"):
        return ("tuple" if tree[0] == "row" else tree[0], *map(simplified, tree[1:]))
    if tree[0] == "*" and tree[2][0] == "tuple" and tree[1][0] == "name" and tree[1][1].isupper():
        return simplified(tree[2])  # a point with its name
    return tree


def _transposed(tree: Tree) -> Tree:
    rows = tree[1:] if tree[0] == "matrix" else (tree[1:],)
    return ("matrix", *zip(*rows, strict=False))


def _relation(tree: Tree) -> Tree:
    signs, operands = tree[1], tree[2]
    if signs[0] == "∈":
        return simplified(operands[-1])
    if signs[0] in "=≈" and all(sign in "=≈" for sign in signs) and is_label(operands[0]):
        return ("labelled", operands[0], simplified(operands[-1]))
    if all(sign in "<>≤≥" for sign in signs) and (interval := _interval(signs, operands)):
        return interval
    return tree


def is_label(tree: Tree) -> bool:
    """Return whether an expression only names what follows: `x`, `f(x)`, `(a, b)`, `Area`."""
    if tree[0] in ("tuple", "list"):
        return all(is_label(part) for part in tree[1:])
    if tree[0] == "*":
        return tree[1][0] == "name" and (
            tree[2][0] == "group" or (is_label(tree[1]) and is_label(tree[2]))
        )
    if tree[0] == "^":  # of an inverse matrix
        return tree[1][0] == "name" and tree[1][1].isupper() and not names_in(tree[2])
    if tree[0] == "apply":
        is_size = tree[1] == "abs" and is_label(tree[2])
        return is_size or tree[1] in _LABELS
    return tree[0] in ("name", "words") and tree[1] not in ("π", "e", "i", "∞")


def _interval(signs: Sequence[str], operands: Sequence[Tree]) -> Tree | None:
    """Return the interval of `a < x ≤ b` or `x > a`; None if it is not one of a variable."""
    if len(operands) == 2:
        (sign,), (left, right) = signs, operands
        if right[0] == "name" and left[0] != "name":
            left, right, sign = right, left, {"<": ">", ">": "<", "≤": "≥", "≥": "≤"}[sign]
        if left[0] != "name" or names_in(right) - CONSTANTS:
            return None
        infinity: Tree = ("name", "∞")
        minus: Tree = ("-", ("number", Fraction(0)), infinity)
        if sign in "<≤":
            return ("interval", minus, right, "()" if sign == "<" else "(]")
        return ("interval", right, infinity, "()" if sign == ">" else "[)")
    if (
        len(operands) != 3
        or operands[1][0] != "name"
        or (names_in(operands[0]) | names_in(operands[2])) - CONSTANTS
    ):
        return None
    low, _, high = operands
    if all(sign in ">≥" for sign in signs):
        low, high, signs = high, low, [{">": "<", "≥": "≤"}[sign] for sign in reversed(signs)]
    if any(sign not in "<≤" for sign in signs):
        return None
    return (
        "interval",
        low,
        high,
        ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]"),
    )


def has_call(tree: Tree) -> bool:
    """Return whether an expression calls an unknown function, such as `f(2)`: it only names a value."""
    if tree[0] == "*" and tree[1][0] == "name" and tree[2][0] == "group" and not names_in(tree[2]):
        return True
    return tree[0] in ("+", "-", "*", "/") and any(map(has_call, tree[1:]))

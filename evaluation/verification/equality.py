r"""Compares two answers of mathematics part by part; no part may be left unread.

Lists and sets have no order; tuples, intervals and matrices do. Rational numbers are compared exactly,
other expressions by their values at several points, to 45 digits.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

from evaluation.reading.formula_tokens import Tree
from evaluation.reading.formulas import parse
from evaluation.reading.tex import tidy
from evaluation.verification.identities import CONSTANTS, identical, names_in, same_equation
from evaluation.verification.simplification import has_call, is_label, simplified
from evaluation.verification.units import scaled, split_unit

_FUNCTION = re.compile(
    r"\s*[A-Za-z]\s*(?:'|\^\s*\{?\s*-\s*1\s*\}?)?\s*\(\s*[A-Za-z](?:,\s*[A-Za-z])*\s*\)\s*$"
    r"|\s*(?:\\frac\s*\{\s*d\w?\s*\}|\\frac\s*\{\s*d\b|d\w?\s*/\s*d\w\b|\\int\b|\\lim\b|\\sum\b|\\prod\b"
    r"|[a-z]'+\s*$)"
)
"""A function's name before `=`, also of an inverse, `f^{-1}(x)`; or what is to be calculated."""


_CONGRUENT = re.compile(r"\\equiv(?![a-z])|≡")
_MODULUS = re.compile(r"\s*(?:\\pmod|\(\s*(?:\\bmod|mod)\b|\\mod\b).*$")


def equal(answer: str, gold: str) -> bool:
    """Return whether two answers are the same in one spelling, or all their parts are equal."""
    if not answer.strip() or not gold.strip():
        return False
    if one_spelling(answer) == one_spelling(gold) != "":
        return True
    wanted = _parsed(gold)
    return wanted is not None and any(
        _equal(tree, wanted) or _all_alike(tree, wanted) for tree in _trees(answer, wanted)
    )


def _all_alike(tree: Tree, gold: Tree) -> bool:
    """Return whether an answer gives one value in several forms: `y - 3 = 2x, or y = 2x + 3`."""
    is_single = (
        tree[0] == "list" and gold[0] not in ("list", "set", "tuple") and not _has_sign(gold)
    )
    return is_single and all(_equal(simplified(part), gold) for part in tree[1:])


def _trees(answer: str, gold: Tree) -> Iterator[Tree]:
    """Yield the trees that an answer may stand for: of `A = B ≈ 0.3` also B alone."""
    if (tree := _parsed(answer)) is not None:
        yield tree
    if gold[0] in ("relation", "labelled"):
        if (
            tree and tree[0] == "relation" and set(tree[1]) == {"="}
        ):  # of `A = 3^2 = 9` also `A = 9`
            first, *others = tree[2]
            if all(_equal(part, others[-1]) for part in others):
                yield ("relation", ("=",), (first, others[-1]))
        return
    exact, _, rounded = _CONGRUENT.sub("=", _MODULUS.sub("", tidy(answer))).partition("≈")
    for text in filter(str.strip, (exact, rounded)):
        parts = text.split("=")
        if len(parts) > 1 or rounded:
            trees = [_parsed(part) for part in parts]
            trees = [tree if tree and "…" not in names_in(tree) else None for tree in trees]
            last = next((part for part in reversed(trees) if part is not None), None)
            is_named = trees[0] is None or _FUNCTION.match(parts[0]) is not None
            if last is not None and (is_named or _is_settled(trees, last)):
                yield last


def _is_settled(trees: Sequence[Tree | None], last: Tree) -> bool:
    """Return whether the parts of `9 * 2 = 18` that are read are equal, or the first only names it."""
    first, *others = (tree for tree in trees if tree is not None)
    if is_label(first) or has_call(first) or not others:
        return True
    if names_in(first) - CONSTANTS:  # an identity, such as an expression and its factors
        others = [first, *others]
    return all(_equal(part, last) for part in others)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Tree | None:
    tree = parse(text)
    return None if tree is None else simplified(tree)


def one_spelling(text: str) -> str:
    """Return a text without layout, case of words, and signs around them."""
    read = tidy(text).replace("\u27ea", "").replace("\u27eb", "").replace("\ue000", "")
    read = "".join(read.split()).rstrip(".,;:!\"'").lstrip(",;:!\"'")
    if sum(map(str.isalpha, read)) == len(read) and len(read) > 1:
        return read.casefold()
    inner = read.strip("()").rstrip(".)")
    return inner.upper() if len(inner) == 1 and inner.isalpha() and inner != read else read


def _equal(first: Tree, second: Tree) -> bool:
    """Return whether two simplified trees are equal."""
    for left, right in ((first, second), (second, first)):
        if left[0] == "labelled" and right[0] == "labelled":
            return _equal(left[2], right[2]) or same_equation(left, right)
        if left[0] == "labelled" and right[0] == "relation":
            return same_equation(left, right)
        if left[0] == "labelled":
            return _equal(left[2], right)
    if "signed" in (first[0], second[0]):
        return _same_value(first, second)
    if first[0] == "relation" and second[0] == "relation":
        return first == second or same_equation(first, second)
    if "words" in (first[0], second[0]):
        return _same_words(first, second)
    if "base" in (first[0], second[0]):
        return _same_base(first, second)
    if {first[0], second[0]} & _STRUCTURES or _has_sign(first) or _has_sign(second):
        return _same_structure(first, second)
    return _same_value(first, second)


_STRUCTURES = {"list", "tuple", "set", "interval", "∪", "∩", "∖", "matrix", ":"}


def _same_structure(left: Tree, right: Tree) -> bool:
    kinds = {left[0], right[0]}
    if "matrix" in kinds:
        rows = [_rows(tree) for tree in (left, right)]
        is_vector = kinds != {"matrix"} and all(min(len(one), len(one[0]) - 1) == 1 for one in rows)
        return _all_equal(rows[0], rows[1], ordered=True) or _all_equal(
            _flat(rows[0]), _flat(rows[1]), ordered=True, only_if=is_vector
        )
    if kinds & {"interval", "∪", "∩", "∖"}:
        return _same_sets(left, right)
    if kinds == {":"}:
        return _same_ratio(left, right)
    if ":" in kinds:
        return False
    if kinds == {"tuple"} or kinds == {"tuple", "list"}:
        return _all_equal(left[1:], right[1:], ordered=True)
    if "tuple" in kinds and not kinds & {"list", "set"}:
        return False
    return _all_equal(_members(left), _members(right), ordered="tuple" in kinds)


def _members(tree: Tree) -> list[Tree]:
    """Return the members of a list or set, in which `±` stands for two values."""
    parts = tree[1:] if tree[0] in ("list", "set", "tuple") else (tree,)
    members: list[Tree] = []
    for part in parts:
        part = part[2] if part[0] == "labelled" else part
        if part[0] in ("list", "set"):
            members += _members(part)
        elif _has_sign(part):
            members += [("signed", part, sign) for sign in (1, -1)]
        else:
            members.append(part)
    return members


def _has_sign(tree: Tree) -> bool:
    return any(
        part in ("±", "∓") or (isinstance(part, tuple) and bool(part) and _has_sign(part))
        for part in tree
        if tree[0] not in ("words", "list", "set", "tuple", "labelled")
    )


def _all_equal(
    ones: Sequence[Tree], others: Sequence[Tree], *, ordered: bool, only_if: bool = True
) -> bool:
    """Return whether each part equals one of the other side: in order, or each another one."""
    if len(ones) != len(others) or not ones or not only_if:
        return False
    if ordered:
        return all(_equal(left, right) for left, right in zip(ones, others, strict=True))
    left = list(others)
    for tree in ones:
        place = next((n for n, other in enumerate(left) if _equal(tree, other)), None)
        if place is None:
            return False
        del left[place]
    return True


def _rows(tree: Tree) -> list[Tree]:
    if tree[0] == "matrix":
        return [("tuple", *row) for row in tree[1:]]
    return [("tuple", *tree[1:])] if tree[0] in ("tuple", "list") else [tree]


def _flat(rows: Sequence[Tree]) -> list[Tree]:
    return [part for row in rows for part in row[1:]]


def _same_sets(left: Tree, right: Tree) -> bool:
    """Return whether two unions of intervals are equal, in any order."""
    if {left[0], right[0]} & {"∩", "∖"}:
        return left[0] == right[0] and all(map(_same_sets, left[1:], right[1:]))
    ones, others = list(_united(left)), list(_united(right))
    if len(ones) != len(others):
        return False
    return all(any(_same_interval(a, b) for b in others) for a in ones) and all(
        any(_same_interval(a, b) for a in ones) for b in others
    )


def _united(tree: Tree) -> Iterator[Tree]:
    if tree[0] in ("∪", "list"):
        for part in tree[1:]:
            yield from _united(part)
    else:
        yield simplified(tree)


def _same_interval(first: Tree, second: Tree) -> bool:
    intervals = [
        ("interval", *tree[1:], "()") if tree[0] == "tuple" and len(tree) == 3 else tree
        for tree in (first, second)
    ]
    if any(tree[0] != "interval" for tree in intervals):
        return (
            intervals[0][0] != "interval"
            and intervals[1][0] != "interval"
            and _equal(first, second)
        )
    left, right = intervals
    return bool(left[3] == right[3]) and _equal(left[1], right[1]) and _equal(left[2], right[2])


def _same_ratio(left: Tree, right: Tree) -> bool:
    parts = [list(_ratio(tree)) for tree in (left, right)]
    return _all_equal(parts[0], parts[1], ordered=True)


def _ratio(tree: Tree) -> Iterator[Tree]:
    if tree[0] == ":":
        yield from _ratio(tree[1])
        yield from _ratio(tree[2])
    else:
        yield tree


def _same_base(left: Tree, right: Tree) -> bool:
    """Return whether digits are equal, and so are the bases if both are given."""
    if left[0] == right[0] == "base":
        return bool(left[1:] == right[1:])
    number, based = (left, right) if right[0] == "base" else (right, left)
    return bool(number[0] == "number" and str(number[1]) == based[1])


def _same_words(left: Tree, right: Tree) -> bool:
    if left[0] != right[0]:
        return False
    return _spelled(left[1]) == _spelled(right[1])


def _spelled(words: str) -> str:
    return " ".join(words.casefold().split()).strip(" .,;:!\"'()")


def _same_value(left: Tree, right: Tree) -> bool:
    """Return whether two expressions have equal values; units count if both have one."""
    (left, unit), (right, other_unit) = split_unit(left), split_unit(right)
    if unit and other_unit and unit.dimension == other_unit.dimension:
        left, right = scaled(left, unit), scaled(right, other_unit)
    elif unit and other_unit and unit.is_known and other_unit.is_known:
        return False
    if left[0] == right[0] == "words":
        return _same_words(left, right)
    if identical(left, right):
        return True
    percents = [_percent(tree) for tree in (left, right)]
    if percents[0] == percents[1]:
        return False
    hundredth = ("number", Fraction(1, 100))
    values = [
        ("*", tree, hundredth) if is_percent else tree
        for tree, is_percent in zip((left, right), percents, strict=True)
    ]
    return identical(*values)


def _percent(tree: Tree) -> bool:
    return bool(tree[0] == "apply" and tree[1] == "%")

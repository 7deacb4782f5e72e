"""Evaluates the tree of a formula: exactly where it is rational, else with 60 digits.

Nothing here takes long: a power or factorial that would have too many digits has no value.
"""

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]

from evaluation.reading.formula_tokens import Tree

Value = Any
"""A Fraction, or a number of mpmath."""

_MOST_BITS = 400_000
"""Bits of the longest number that is computed exactly."""
_LARGEST_FACTORIAL = 20_000
_LARGEST_EXPONENT = 10**9
_context = mpmath.mp.clone()
_context.dps = 60
_CLOSE = _context.mpf(10) ** -45


class Undefined(ValueError):
    """Raised where an expression has no value, or one that is too large; it never reaches users."""


def evaluate(tree: Tree, names: Mapping[str, Value], sign: int = 1) -> Value:
    """Return the value of an expression: a Fraction where it can be exact, else a number of mpmath.

    Args:
        sign: Which of the two values `±` stands for, 1 or -1.

    Raises:
        Undefined: It is no expression, is not defined there, or is too large.
    """
    try:
        return _evaluate(tree, names, sign)
    except (ZeroDivisionError, OverflowError, TypeError, ValueError, KeyError) as error:
        raise Undefined(str(error)) from None


def same(left: Value, right: Value) -> bool:
    """Return whether two values are equal: exactly if both are rational, else to 45 digits."""
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left == right
    left, right = _float(left), _float(right)
    if _context.isinf(left) or _context.isinf(right):
        return bool(left == right)
    largest = max(abs(left), abs(right))
    if min(abs(left), abs(right)) == 0:
        return bool(largest < _context.mpf(10) ** -50)
    return bool(abs(left - right) <= _CLOSE * largest)


def _float(value: Value) -> Value:
    if isinstance(value, Fraction):
        return _context.mpf(value.numerator) / value.denominator
    return value


def _evaluate(tree: Tree, names: Mapping[str, Value], sign: int) -> Value:
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind == "group":
        return _evaluate(tree[1], names, sign)
    if kind == "name":
        return _named(tree[1], names)
    if kind in _OPERATIONS:
        return _OPERATIONS[kind](*(_evaluate(part, names, sign) for part in tree[1:]))
    if kind in ("±", "∓"):
        left, right = (_evaluate(part, names, sign) for part in tree[1:])
        return _OPERATIONS["+" if (kind == "±") == (sign > 0) else "-"](left, right)
    if kind == "apply":
        if tree[1] in ("gcd", "lcm", "max", "min"):
            members = tree[2][1:] if tree[2][0] == "list" else tree[2:3]
            return _of_several(tree[1], [_evaluate(part, names, sign) for part in members])
        if tree[1] in _TRIGONOMETRIC:
            return _apply(tree[1], [_evaluate(_in_radians(tree[2]), names, sign)])
        if tree[1] == "overline":
            raise Undefined("a repeating decimal")
        return _apply(tree[1], [_evaluate(part, names, sign) for part in tree[2:]])
    raise Undefined(str(kind))


def _in_radians(tree: Tree) -> Tree:
    """Return an angle with degrees as fractions of π."""
    if tree[:2] == ("apply", "°"):
        return ("*", tree[2], ("/", ("name", "π"), ("number", Fraction(180))))
    return tuple(_in_radians(part) if isinstance(part, tuple) and part else part for part in tree)


def _named(name: str, names: Mapping[str, Value]) -> Value:
    if name in names:
        return names[name]
    if name == "π":
        return +_context.pi
    if name == "e":
        return +_context.e
    if name == "i":
        return _context.mpc(0, 1)
    if name == "∞":
        return _context.inf
    raise Undefined(name)


def _exactly(operation: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    """Return an operation that is exact on two rational numbers, if they are not too long."""

    def calculate(left: Value, right: Value) -> Value:
        are_rational = isinstance(left, Fraction) and isinstance(right, Fraction)
        if are_rational and _bits(left) + _bits(right) <= 2 * _MOST_BITS:
            return operation(left, right)
        return operation(_float(left), _float(right))

    return calculate


def quotient(left: Value, right: Value) -> Value:
    if right == 0:
        raise Undefined("division by zero")
    return _exactly(operator.truediv)(left, right)


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if base == 0 and exponent < 0:
            raise Undefined("division by zero")
        if exponent.denominator == 1 and abs(exponent) * max(1, _bits(base) - 1) <= _MOST_BITS:
            return Fraction(base) ** int(exponent)
        if (root := _exact_root(base, exponent)) is not None:
            return root
    if abs(exponent) > _LARGEST_EXPONENT:
        raise Undefined("too large")
    base_float = _float(base)
    if isinstance(exponent, Fraction) and exponent.denominator % 2 and _is_negative(base_float):
        sign = -1 if exponent.numerator % 2 else 1
        return sign * _context.power(-base_float, _float(exponent))
    return _real(_context.power(base_float, _float(exponent)), base_float, exponent)


def _exact_root(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Return a rational root of a rational number, such as that of 9/4; None if it is not rational."""
    if (
        exponent.denominator != 2
        or abs(exponent.numerator) > 64
        or _bits(base) > 10_000
        or base < 0
    ):
        return None
    top, bottom = math.isqrt(base.numerator), math.isqrt(base.denominator)
    if top * top != base.numerator or bottom * bottom != base.denominator:
        return None
    if top == 0:
        return Fraction(0) if exponent > 0 else None
    return Fraction(top, bottom) ** exponent.numerator


def _is_negative(value: Value) -> bool:
    return not isinstance(value, _context.mpc) and value < 0


def _real(value: Value, base: Value, exponent: Value) -> Value:
    """Return a value; raise Undefined if real operands gave a complex one."""
    is_complex = isinstance(value, _context.mpc) and value.imag != 0
    given = (base, exponent)
    if is_complex and not any(isinstance(part, _context.mpc) for part in given):
        raise Undefined("not real")
    return value


def _apply(name: str, values: list[Value]) -> Value:
    if name in _OF_VALUES:
        return _OF_VALUES[name](*values)
    if name not in _FUNCTIONS:
        raise Undefined(name)
    value = _float(values[0])
    return _real(_FUNCTIONS[name](value), value, Fraction(1))


def _rounded(value: Value, direction: str) -> Fraction:
    if isinstance(value, Fraction):
        return Fraction(getattr(math, direction)(value))
    return Fraction(int(getattr(_context, direction)(value)))


def _square_root(value: Value) -> Value:
    if isinstance(value, Fraction):
        if value < 0:
            root = _square_root(-value)
            return _context.mpc(0, _float(root))
        return _power(value, Fraction(1, 2))
    if not isinstance(value, _context.mpc) and value < 0:
        return _context.mpc(0, _context.sqrt(-value))
    return _context.sqrt(value)


def _logarithm(value: Value, base: Value = None) -> Value:
    if value == 0:
        raise Undefined("logarithm of zero")
    logarithm = _context.log(_float(value))
    if base is not None:
        logarithm = logarithm / _context.log(_float(base))
    return _real(logarithm, _float(value), Fraction(1))


def _factorial(value: Value) -> Fraction:
    if not isinstance(value, Fraction) or value.denominator != 1:
        raise Undefined("factorial")
    if not 0 <= value <= _LARGEST_FACTORIAL:
        raise Undefined("too large")
    return Fraction(math.factorial(int(value)))


def _binomial(n: Value, k: Value) -> Fraction:
    whole = [v for v in (n, k) if isinstance(v, Fraction) and v.denominator == 1]
    if len(whole) < 2 or not 0 <= n <= _LARGEST_FACTORIAL or k < 0:
        raise Undefined("too large")
    return Fraction(math.comb(int(n), int(k)))


def _of_several(name: str, values: list[Value]) -> Value:
    if name in ("max", "min"):
        return max(values) if name == "max" else min(values)
    if not all(isinstance(value, Fraction) and value.denominator == 1 for value in values):
        raise Undefined(name)
    function = math.gcd if name == "gcd" else math.lcm
    return Fraction(function(*map(int, values)))


_TRIGONOMETRIC = ("sin", "cos", "tan", "cot", "sec", "csc")
_FUNCTIONS: Mapping[str, Callable[[Value], Value]] = {
    **{name: getattr(_context, name) for name in (*_TRIGONOMETRIC, "sinh", "cosh", "tanh", "exp")},
    "arcsin": _context.asin,
    "arccos": _context.acos,
    "arctan": _context.atan,
}
_OF_VALUES: Mapping[str, Callable[..., Value]] = {
    "°": lambda value: value,
    "%": lambda value: value,
    "!": _factorial,
    "abs": abs,
    "sqrt": _square_root,
    "root": lambda value, degree: _power(value, quotient(Fraction(1), degree)),
    "binom": _binomial,
    "floor": lambda value: _rounded(value, "floor"),
    "ceil": lambda value: _rounded(value, "ceil"),
    "ln": _logarithm,
    "log": lambda value, base=Fraction(10): _logarithm(value, base),
    "lg": lambda value, base=Fraction(10): _logarithm(value, base),
}
_OPERATIONS: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": _exactly(operator.add),
    "-": _exactly(operator.sub),
    "*": _exactly(operator.mul),
    "/": quotient,
    "^": _power,
}

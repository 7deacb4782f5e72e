"""Parses what has no operator in a formula: numbers, names, functions, brackets and matrices."""

import re
from collections.abc import Sequence
from fractions import Fraction

from evaluation.reading.expressions import Expressions
from evaluation.reading.formula_tokens import Tree, Unreadable

FUNCTIONS = frozenset(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log exp lg gcd lcm max min det"
    " floor ceil abs".split()
)
_SHORT_WORDS = frozenset(
    "cm mm km ft mi in mph kph kg mg lb lbs oz sec min hr hrs day usd eur rs yen sq ml per and rad".split()
)
"""Words of at most three letters that are no product of variables; longer ones never are."""


class Atoms(Expressions):
    """A parser of an expression; a subclass reads lists and relations of expressions."""

    def sequence(self, end: str) -> Tree:
        """Return a list of parts up to a closing sign; a single part alone."""
        raise NotImplementedError

    def relation(self) -> Tree:
        """Return an expression, or expressions with signs between them."""
        raise NotImplementedError

    def atom(self) -> Tree:
        kind, value = self.kind(), self.take()
        if kind == "number":
            return ("number", _number(value))
        if kind == "words":
            return ("words", value.strip("\u27ea\u27eb"))
        if kind == "name":
            return self.named(value)
        if kind == "command":
            return self.command(value)
        if value in "([{":
            return self.bracketed(value)
        if value == "|":
            self.in_brackets += 1
            inner = self.sum()
            self.in_brackets -= 1
            self.expect("|")
            return ("apply", "abs", inner)
        if value in "π∞∅…":
            return ("name", value)
        raise Unreadable(value)

    def named(self, word: str) -> Tree:
        """Return a function, one variable, a product of variables, or a word."""
        if word in FUNCTIONS:
            return self.function(word)
        if word == "sqrt":
            return ("apply", "sqrt", self._argument())
        if len(word.rstrip("'")) == 1 and word[0] < "\u0400":  # of Latin or Greek
            return ("name", word)
        if word.casefold() in _SHORT_WORDS or len(word) > 3 or not word.isascii():
            return ("words", word)
        tree: Tree = ("name", word[0])
        for letter in word[1:]:
            tree = ("*", tree, ("name", letter))
        return tree

    def function(self, name: str) -> Tree:
        power: Tree | None = None
        base: Tree | None = None
        while self.peek() and self.peek() in "^_":
            if self.take() == "^":
                power = self.exponent()
            else:
                base = self.group() if self.peek() == "{" else self.atom()
        tree = ("apply", name, self._argument(), *([base] if base else []))
        return ("^", tree, power) if power else tree

    def _argument(self) -> Tree:
        if self.peek() == "(":
            self.take()
            tree = self.sequence(")")
            self.expect(")")
            return tree
        if self.peek() == "-":
            return self.product()
        tree = self.power()
        while (
            self.starts_factor() and self.peek() not in FUNCTIONS and self.peek() not in ("(", "[")
        ):
            if self.kind() == "command" and self.peek()[1:] in FUNCTIONS:
                break
            tree = ("*", tree, self.power())
        return tree

    def command(self, value: str) -> Tree:
        name = value[1:]
        if name == "frac":
            top = self._short_group()
            return ("/", top, self._short_group())
        if name == "sqrt":
            return self.root()
        if name in ("binom", "dbinom", "tbinom"):
            top = self._short_group()
            return ("apply", "binom", top, self._short_group())
        if name in FUNCTIONS:
            return self.function(name)
        if name in ("lfloor", "lceil"):
            inner = self.sum()
            self.expect("\\rfloor" if name == "lfloor" else "\\rceil")
            return ("apply", "floor" if name == "lfloor" else "ceil", inner)
        if name == "{":
            inner = self.sequence("\\}")
            self.expect("\\}")
            return ("set", *_members(inner))
        if name == "overline":
            return ("apply", "overline", self._short_group())
        if name == "begin":
            return self.matrix()
        if name in ("mathbb", "mathcal"):
            return ("name", f"{name} {self.subscript()}")
        if name in ("bar", "vec", "hat", "tilde", "angle", "triangle"):
            return ("apply", name, self._short_group())
        if name.isalpha() and name not in (
            "end",
            "right",
            "rfloor",
            "rceil",
            "sum",
            "int",
            "prod",
            "lim",
        ):
            return ("name", value)
        raise Unreadable(value)

    def root(self) -> Tree:
        degree: Tree | None = None
        if self.peek() == "[":
            self.take()
            degree = self.sum()
            self.expect("]")
        inner = self._argument() if self.peek() == "(" else self._short_group()
        return ("apply", "root", inner, degree) if degree else ("apply", "sqrt", inner)

    def _short_group(self) -> Tree:
        r"""Return `{…}`, or the one sign that TeX takes without braces: of `\frac12` first 1, then 2."""
        if self.peek() == "{":
            return self.group()
        if self.kind() == "number" and len(self.peek()) > 1 and self.peek().isdigit():
            first, rest = self.peek()[0], self.peek()[1:]
            self.tokens[self.place] = ("number", rest)
            return ("number", Fraction(int(first)))
        return self.atom()

    def bracketed(self, opening: str) -> Tree:
        if opening == "{":
            inner = self.sequence("}")
            self.expect("}")
            return ("set", *_members(inner)) if inner[0] == "list" else inner
        outside, self.in_brackets = self.in_brackets, 0
        self._split_thousands()
        inner = self.sequence(")")
        closing = self.take()
        self.in_brackets = outside
        if closing not in (")", "]"):
            raise Unreadable(closing)
        members = _members(inner)
        if opening + closing == "[]" and all(_is_row(member) for member in members):
            return ("matrix", *(_members_of_row(member) for member in members))
        if len(members) == 2 and (opening + closing) != "()":
            return ("interval", *members, opening + closing)
        if len(members) > 1:
            return ("row" if opening + closing == "[]" else "tuple", *members)
        if inner[0] == "matrix":
            return inner
        if opening + closing == "()" and inner[0] not in ("relation", "words"):
            return ("group", inner)
        if opening + closing == "()":
            return inner
        raise Unreadable(opening)

    def _split_thousands(self) -> None:
        """Read `1,200` in brackets as two numbers: thousands there are written `1{,}200`."""
        depth = 0
        for place in range(self.place, len(self.tokens)):
            kind, value = self.tokens[place]
            depth += (value in ("(", "[")) - (value in (")", "]"))
            if depth < 0:
                break
            if kind == "number" and "," in value:
                parts = value.split(",")
                split = [("number", parts[0])]
                for part in parts[1:]:
                    split += [("sign", ","), ("number", part)]
                self.tokens[place : place + 1] = split
                return self._split_thousands()
        return None

    def matrix(self) -> Tree:
        kind = self.subscript()
        if self.peek() == "{":
            self.subscript()  # the alignment of an array
        rows: list[list[Tree]] = [[]]
        while self.peek() != "\\end":
            if self.peek() in ("&", "\\\\"):
                if self.take() == "\\\\":
                    rows.append([])
                continue
            rows[-1].append(self.relation())
            if self.peek() not in ("&", "\\\\", "\\end"):
                raise Unreadable(self.peek())
        self.take()
        if self.subscript() != kind:
            raise Unreadable(kind)
        if kind == "cases":
            return ("list", *(part for row in rows for part in row[:1]))
        matrix: Tree = ("matrix", *(tuple(row) for row in rows if row))
        return ("apply", "det", matrix) if kind.casefold() == "vmatrix" else matrix


def _is_row(tree: Tree) -> bool:
    return bool(tree[0] == "row" or (tree[0] == "interval" and tree[3] == "[]"))


def _members_of_row(tree: Tree) -> Tree:
    return tree[1:] if tree[0] == "row" else tree[1:3]


def _members(tree: Tree) -> Sequence[Tree]:
    return tree[1:] if tree[0] == "list" else (tree,)


def _number(text: str) -> Fraction:
    return Fraction(re.sub("[\ue000,]", "", text))

"""Parses an answer's formula completely, or not at all.

A tree is a tuple: an operation's name and its operands. `("number", Fraction)`, `("name", "x")`,
`("+", a, b)`, `("apply", "sqrt", a)` … are expressions; `("list", …)`, `("tuple", …)`, `("set", …)`,
`("interval", low, high, "[)")`, `("relation", "=", left, right)`, `("matrix", rows)`, `("words", text)`
and `("base", digits, base)` are the rest.
"""

from evaluation.reading.atoms import Atoms
from evaluation.reading.formula_tokens import Tree, Unreadable, joins
from evaluation.reading.tex import tidy

_LONGEST = 2_000
"""Characters of the longest formula that is parsed."""
_RELATIONS = "=<>≤≥≠≈∈"


def parse(answer: str) -> Tree | None:
    """Return the tree of an answer in TeX or plain text; None if some of its text is not read."""
    text = tidy(answer)
    if not text or len(text) > _LONGEST:
        return None
    try:
        return _Parser(text).answer()
    except (Unreadable, RecursionError, ValueError, OverflowError):
        return None


class _Parser(Atoms):
    """A parser of a whole answer."""

    def answer(self) -> Tree:
        tree = self.sequence("")
        if self.place < len(self.tokens):
            raise Unreadable(self.peek())
        return tree

    def sequence(self, end: str) -> Tree:
        """Return a list of parts up to a closing sign; a single part alone."""
        parts = [self.relation()]
        while self.peek() in (",", ";") or joins(self.peek()):
            self.take()
            while self.peek() in (",", ";") or joins(self.peek()):
                self.take()
            if self.peek() == end:
                break
            parts.append(self.relation())
        return parts[0] if len(parts) == 1 else ("list", *parts)

    def relation(self) -> Tree:
        """Return an expression, or expressions with signs between them: `0 < x ≤ 3`."""
        operands, signs = [self.union()], list[str]()
        while self.peek() and self.peek() in _RELATIONS + "⇒":
            signs.append(self.take())
            operands.append(self.union())
        if not signs:
            return operands[0]
        if "⇒" in signs:
            last = len(signs) - signs[::-1].index("⇒")
            operands, signs = operands[last:], signs[last:]
            if not signs:
                return operands[0]
        return ("relation", tuple(signs), tuple(operands))

    def union(self) -> Tree:
        tree = self.sum()
        while self.peek() and self.peek() in "∪∩∖:":
            tree = (self.take(), tree, self.sum())
        return tree

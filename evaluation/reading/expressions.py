"""Parses sums, products and powers of a formula."""

from fractions import Fraction

from evaluation.reading.formula_tokens import Tokens, Tree, Unreadable, joins

_DEEPEST = 60


class Expressions(Tokens):
    """A parser by recursive descent; a subclass reads what has no operator."""

    def atom(self) -> Tree:
        """Return a number, name, function or what is in brackets."""
        raise NotImplementedError

    def sum(self) -> Tree:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unreadable("too deep")
        tree = self.product()
        while self.peek() and self.peek() in "+-±∓":
            tree = (self.take(), tree, self.product())
        self.depth -= 1
        return tree

    def product(self) -> Tree:
        if self.peek() and self.peek() in "+-±∓":
            sign = self.take()
            operand = self.product()
            return operand if sign == "+" else (sign, ("number", Fraction(0)), operand)
        tree, is_number = self.power(), self._was_number()
        while True:
            sign = self.peek()
            if sign and sign in "*/":
                self.take()
                operand = self._signed_power()
                tree, is_number = (sign, tree, operand), False
            elif self.starts_factor():
                if is_number and self.kind() == "number" and not self._is_mixed():
                    raise Unreadable("two numbers side by side")
                if is_number and (self.peek() == "\\frac" or self._is_mixed()):
                    part = self.fraction_after_number()
                    tree = ("+", tree, part) if _is_proper(part) else ("*", tree, part)
                    is_number = False
                    continue
                operand = self.power()
                tree, is_number = ("*", tree, operand), False
            else:
                return tree

    def _signed_power(self) -> Tree:
        if self.peek() == "-":
            self.take()
            return ("-", ("number", Fraction(0)), self.power())
        return self.power()

    def _was_number(self) -> bool:
        return self.tokens[self.place - 1][0] == "number" and (
            self.place < 2 or self.tokens[self.place - 2][1] not in ("^", "_")
        )

    def _is_mixed(self) -> bool:
        """Return whether `1/2` follows, with whole numbers."""
        kinds = [kind for kind, _ in self.tokens[self.place : self.place + 3]]
        return kinds == ["number", "sign", "number"] and self.peek(1) == "/"

    def fraction_after_number(self) -> Tree:
        if self.peek() == "\\frac":
            return self.power()
        top = self.atom()
        self.expect("/")
        return ("/", top, self.atom())

    def starts_factor(self) -> bool:
        value, kind = self.peek(), self.kind()
        if not value or joins(value):
            return False
        if kind in ("number", "name"):
            return True
        if kind == "words":
            return True
        if kind == "command":
            return value not in ("\\}", "\\|", "\\\\", "\\end", "\\rfloor", "\\rceil")
        return value in "({[π∞" or (value == "|" and not self.in_brackets)

    def power(self) -> Tree:
        tree = self.postfix(self.atom())
        if self.peek() == "^":
            self.take()
            tree = self.postfix(("^", tree, self.exponent()))
        return tree

    def exponent(self) -> Tree:
        if self.peek() == "{":
            return self.group()
        if self.peek() and self.peek() in "+-":
            return (self.take(), ("number", Fraction(0)), self.atom())
        if (
            self.kind() == "number"
            and len(self.peek()) > 1
            and "\\" in self.tokens[max(0, self.place - 2)][1]
        ):
            return self.atom()
        return self.power()

    def postfix(self, tree: Tree) -> Tree:
        while self.peek() and self.peek() in "!%°":
            tree = ("apply", self.take(), tree)
        if self.peek() == "_":
            self.take()
            if tree[0] == "name":
                return ("name", f"{tree[1]}_{self.subscript()}")
            base = self.subscript()
            digits = tree[1] if tree[0] == "digits" else _digits_of(tree)
            return ("base", digits, base)
        return tree

    def group(self) -> Tree:
        self.expect("{")
        tree = self.sum()
        self.expect("}")
        return tree


def _is_proper(tree: Tree) -> bool:
    """Return whether it is a fraction of whole numbers below 1."""
    if tree[0] != "/" or any(part[0] != "number" for part in tree[1:]):
        return False
    return 0 < tree[1][1] < tree[2][1] and all(part[1].denominator == 1 for part in tree[1:])


def _digits_of(tree: Tree) -> str:
    while tree[0] == "group":
        tree = tree[1]
    if tree[0] == "number" and tree[1].denominator == 1:
        return str(tree[1])
    if tree[0] == "*" or tree[0] == "name":
        return "".join(_letters(tree))
    raise Unreadable("a base")


def _letters(tree: Tree) -> list[str]:
    if tree[0] == "*":
        return [*_letters(tree[1]), *_letters(tree[2])]
    return [str(tree[1])]

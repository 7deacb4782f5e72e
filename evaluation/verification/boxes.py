r"""The answer in the last `\boxed{}` of a solution, and one spelling of answers that differ in none.

The spelling is that of the MATH benchmark (Hendrycks et al. 2021): `\dfrac12`, `\frac{1}{2}`, `0.5`
and `1/2` are the same, units and degrees do not count, and nothing is calculated.
"""

import re

_MARKS = ("\\boxed", "\\fbox")

_SPELLINGS = (
    ("\n", ""),
    ("\\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\$", ""),
    ("\\%", ""),
)


def last_boxed(text: str) -> str | None:
    r"""What the last `\boxed{…}` or `\fbox{…}` holds; None without one, or if it is not closed.

    `\boxed 5` without braces holds what stands before the next dollar.
    """
    mark = next((mark for mark in _MARKS if mark in text), None)
    if mark is None:
        return None
    rest = text.rpartition(mark)[2]
    if rest.startswith("{"):
        end = _closing(rest)
        return None if end is None else rest[1:end]
    return rest.partition("$")[0].strip() or None if rest.startswith(" ") else None


def _closing(text: str) -> int | None:
    """Where the brace that opens `text` is closed; braces behind a backslash are characters."""
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return brace.start()
    return None


def answer_of(gold: str) -> str:
    r"""The answer of a gold, which may be a whole solution with its answer in `\boxed{}`."""
    boxed = last_boxed(gold)
    return gold if boxed is None else boxed


def spelled(answer: str) -> str:
    """The answer in the benchmark's spelling."""
    for before, after in _SPELLINGS:
        answer = answer.replace(before, after)
    answer = answer.partition("\\text{ ")[0]  # a unit to the right
    answer = re.sub(r"(^|[ {])\.(?=\d)", r"\g<1>0.", answer)
    answer = re.sub(r"^[^=]{0,2}=([^=]*)$", r"\1", answer)  # `k = 5`
    answer = re.sub(r"\\sqrt([^{\[])", r"\\sqrt{\1}", answer)
    answer = answer.replace(" ", "")
    answer = re.sub(r"\\frac([^{}\\])", r"\\frac{\1}", answer)
    answer = re.sub(r"(\\frac\{[^{}]*\})([^{}\\])", r"\1{\2}", answer)
    if answer == "0.5":
        return "\\frac{1}{2}"
    return re.sub(r"^(-?\d+)/(-?\d+)$", r"\\frac{\1}{\2}", answer)

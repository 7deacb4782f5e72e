r"""The spellings in which the MATH benchmark and Minerva compare answers in TeX, rule for rule.

`last_boxed` and `minerva_spelling` are those of lm-evaluation-harness 0.4.13 (`minerva_math`): the rules of
appendix D of Lewkowycz et al. (2022), corrected so that units are whole words, `\left` does not contain
`ft`, and `0,1` is not a number. `math_spelling` is that of Hendrycks et al. (2021): `0.5`, `\dfrac12`,
`\frac{1}{2}` and `1/2` are equal, units and degrees are ignored, nothing is calculated.
"""

import re

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

_SUBSTITUTIONS = (
    ("an ", ""),
    ("a ", ""),
    (".$", "$"),
    ("\\$", ""),
    ("\\ ", ""),
    (" ", ""),
    ("mbox", "text"),
    (",\\text{and}", ","),
    ("\\text{and}", ","),
    ("\\text{m}", "\\text{}"),
)

_REMOVED = (
    *("square", "ways", "integers", "dollars", "mph", "inches", "ft", "hours", "km", "units"),
    *("\\ldots", "sue", "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm"),
    *("pounds", "meters", "meals", "edges", "students", "childrentickets", "multiples"),
    *("\\text{s}", "\\text{.}", "\\text{\ns}", "\\text{}^2", "\\text{}^3", "\\text{\n}"),
    *("\\text{}", "\\mathrm{th}", "^\\circ", "^{\\circ}", "\\;", ",\\!", "{,}", '"', "\\dots"),
)

_UNWRAPPED = (
    (r"(?m)^[^$\n]*\$(.*?)\$.*", r"$\1$"),  # `.*?` at each place takes minutes for a long text
    (r"\\text\{(.*?)\}", r"\1"),
    (r"\\textbf\{(.*?)\}", r"\1"),
    (r"\\overline\{(.*?)\}", r"\1"),
    (r"\\boxed\{(.*)\}", r"\1"),
    (r"frac([^{])(.)", r"frac{\1}{\2}"),
    (r"sqrt(\[[^\]]*\])(\w)", r"sqrt\1{\2}"),
    (r"sqrt(?!\[)([^{])", r"sqrt{\1}"),
)

_BRACES = re.compile(r"[{}]")


def last_boxed(text: str) -> str | None:
    r"""Return what the last `\boxed{…}` or `\boxed 5$` holds; None if there is none, or it is not closed."""
    if "\\boxed " in text:
        return text.rpartition("\\boxed ")[2].partition("$")[0].strip() or None
    boxed = text.rpartition("\\boxed")
    if not boxed[1] or not boxed[2].startswith("{"):
        return None
    depth = 0
    for brace in _BRACES.finditer(boxed[2]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return boxed[2][1 : brace.start()]
    return None


def gold_answer(gold: str) -> str:
    r"""Return what the last `\boxed{}` of a gold holds, which may be a whole solution; all of it without."""
    boxed = last_boxed(gold)
    return gold if boxed is None else boxed


def math_spelling(answer: str) -> str:
    """Return an answer in TeX, without its box, in the spelling of the MATH benchmark."""
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


def minerva_spelling(answer: str) -> str:
    """Return an answer without units and layout, with TeX's short forms written out."""
    answer = answer.rpartition("=")[2]
    for unit in filter(str.isalpha, _REMOVED):  # while spaces still separate words
        answer = re.sub(rf"(?<!\\)\b{unit}\b", "", answer)
    for before, after in _SUBSTITUTIONS:
        answer = answer.replace(before, after)
    for removed in _REMOVED:
        answer = _without(answer, removed)
    for pattern, replacement in _UNWRAPPED:
        answer = re.sub(pattern, replacement, answer)
    answer = answer.replace("$", "")
    is_number = re.fullmatch(r"-?\d{1,3}(,\d{3})+", answer)
    return answer.replace(",", "") if is_number else answer


def _without(answer: str, removed: str) -> str:
    """Remove a text from an answer, but not from the names of TeX commands."""
    if not removed.isalpha():
        return answer.replace(removed, "")
    if removed not in answer:
        return answer
    return re.sub(rf"(\\[a-zA-Z]+)|{removed}", lambda match: match.group(1) or "", answer)

"""Writes TeX and the Unicode signs of formulas in one spelling, for readers of formulas and numbers."""

import re
import unicodedata

from evaluation.reading.boxes import closing
from evaluation.reading.text import plain

GROUPING = "\ue000"
"""Sign between the groups of a number's digits, which no list has."""

_COMMANDS = {
    "×": "cdot times ast",
    "÷": "div",
    "≤": "leq leqslant le",
    "≥": "geq geqslant ge",
    "<": "lt",
    ">": "gt",
    "≠": "neq ne",
    "≈": "approx simeq",
    "±": "pm",
    "∓": "mp",
    "∞": "infty",
    "π": "pi",
    "∪": "cup",
    "∩": "cap",
    "∈": "in",
    "∅": "emptyset varnothing",
    "∖": "setminus backslash",
    "°": "degree",
    "(": "langle lparen",
    ")": "rangle rparen",
    "[": "lbrack",
    "]": "rbrack",
    "\\{": "lbrace",
    "\\}": "rbrace",
    "|": "lvert rvert vert mid",
    "i": "imath",
    "l": "ell",
    "…": "ldots dots cdots dotsc",
    "⇒": "implies Rightarrow Longrightarrow to rightarrow iff",
    "\\frac": "dfrac tfrac cfrac",
    " or ": "lor vee",
    " and ": "land wedge",
    "£": "pounds",
    "€": "euro",
    " ": "displaystyle textstyle limits nolimits quad qquad hfill",
}
_SIGN_OF = {name: sign for sign, names in _COMMANDS.items() for name in names.split()}
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_LAYOUT = (
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|middle)(?![A-Za-z])\s*\.?"), ""),
    (re.compile(r"(?<![\d.])0\{,\}(?=\d)"), "0."),
    (re.compile(r"\{,\}|(?<=\d)(?:\\,|,?\s*\\!\s*)(?=\d{3}(?!\d))"), GROUPING),
    (re.compile(r"(?<!\\)\\[,;:>! ]|~"), " "),
    (re.compile(r"\\(?:text)?color(?:box)?\s*(?:\[[^\]]*\])?\s*\{[^{}]*\}"), ""),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?"), "°"),
)
"""Spaces, sizes, groups of digits, and the degree sign."""
_COORDINATE = r" ?[-−]? ?(?:\d+(?:[.,/]\d+)?|\\frac ?\{\d+\} ?\{\d+\}) ?"
_POINT = re.compile(rf"(?:\b[A-Z] ?)?\(({_COORDINATE}(?:\|{_COORDINATE}){{1,2}})\)")
"""A point as in German: `S(3|5)`."""
_SPEED = re.compile(
    r"(?<=\d)(?:\s*(km|mi|cm|mm|ft|miles?|feet|meters?|metres?|ml|liters?|litres?|kg)|\s+([mlLg]))\s*/\s*"
    r"(h|hr|hour|min|minute|s|sec|second|day)(?![\w^({])"
)
"""A unit per time after a number, which is no quotient of variables: `60 mi/h`."""
_TEXT, _END = "\u27ea", "\u27eb"
"""Signs around what stands in `\\text{}`."""
_OF_FORMULAS = (
    (re.compile(r"\\\{\s*\\\}"), "∅"),
    (re.compile(r"\\\{\s*[a-z]\s*(?:∈(?:[^|:{}]|\{R\})*)?[|:]([^{}]+)\\\}"), r"\1"),
    (
        re.compile(r"\{([^{}]+)\\over(?![a-z])([^{}]+)\}|^([^{}]+)\\over(?![a-z])([^{}]+)$"),
        r"\\frac{\1\3}{\2\4}",
    ),
    (re.compile(r"\^\{?(\d+)\}?\s*/\s*_\{?(\d+)\}?"), r"\\frac{\1}{\2}"),
    (_POINT, lambda point: f"({point[1].replace(',', '.').replace('|', ', ')})"),
    (_SPEED, lambda speed: f"{_TEXT}{speed[1] or speed[2]}/{speed[3]}{_END}"),
    (re.compile(r"\bis (?:(?:less|smaller) than or equal to|at most|no more than)\b"), "≤"),
    (re.compile(r"\bis (?:(?:greater|more|larger) than or equal to|at least|no less than)\b"), "≥"),
    (re.compile(r"\bis (?:strictly )?(?:less|smaller) than\b"), "<"),
    (re.compile(r"\bis (?:strictly )?(?:greater|more|larger) than\b"), ">"),
    (re.compile(r"\bplus or minus\b"), "±"),
    (re.compile(r"\b(?:the )?square root of (\d+|[a-z]\b)"), r"\\sqrt{\1}"),
    (re.compile(r"\{([^{}]{1,40})\\choose([^{}]{1,40})\}"), r"\\binom{\1}{\2}"),
    (re.compile(r"\{:\}"), ":"),
    (re.compile(r"<="), "≤"),
    (re.compile(r">="), "≥"),
    (re.compile(r"\+/?-"), "±"),
    (re.compile(r"\.\.\."), "…"),
    (re.compile(r"\binfinity\b"), "∞"),
    (re.compile(r"\bpi\b"), "π"),
    (re.compile(r"\bdegrees?\b"), "°"),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\?\$|\\[()\[\]]"), " "),
    (re.compile(r"\\&"), " and "),
    (re.compile(r"√\s*\("), r"\\sqrt("),
    (re.compile(r"√\s*(\d+|[a-z])"), r"\\sqrt{\1}"),
    (re.compile(r"\b([a-z])([1-9])(?=\s*=)"), r"\1_\2"),
    (re.compile(r"(?<=\d) to (?=\d)"), ":"),
    (re.compile(r"∛\s*(?:(\d+|[a-z])|\(([^()]*)\))"), r"\\sqrt[3]{\1\2}"),
    (re.compile(r"\b(\w+)\s*,?\s*(?:in\s+|\(\s*)?base[ -]\{?(\w+)\b\}?\)?"), r"\1_{\2}"),
    (
        re.compile(r"(?<![\d.,])(\d{1,3}(?: \d{3})+)(?![\d ]*\d|[.,]\d)"),
        lambda run: run[1].replace(" ", GROUPING),
    ),
    (re.compile(r"\*\*\s*(?=[\d({-])"), "^"),
    (re.compile(r"\*\*|__|`"), ""),
)
_SIGNS = str.maketrans("·×⋅∗÷〈⟨〉⟩→％–、€£¥₹", "****/(())⇒%-,    ")
_ROW_HEIGHT = re.compile(r"\\\\\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in)\s*\]")
WRAPPING = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|boldsymbol|operatorname\*?"
    r"|textnormal|rm|bf|emph|underline|boxed|hbox)\s*\{"
)
"""The beginning of `\\text{…}` and the like."""
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def with_signs(text: str) -> str:
    """Return a text with signs in place of TeX's commands for them, and without its layout."""
    for pattern, replacement in _LAYOUT:
        text = pattern.sub(replacement, text)
    return _COMMAND.sub(lambda command: _SIGN_OF.get(command[1], command[0]), text)


def tidy(answer: str) -> str:
    r"""Return an answer with one spelling of each sign of TeX; what is in `\text{…}` is between ⟪ and ⟫."""
    text = re.sub(
        "[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ]+", lambda run: f"^{{{run[0].translate(_SUPERSCRIPTS)}}}", answer
    )
    text = re.sub("[₀-₉]+", lambda run: f"_{{{run[0].translate(_SUBSCRIPTS)}}}", text)
    text = "".join(map(_ascii_digit, plain(text)))
    text = _ROW_HEIGHT.sub(r"\\\\", _REPEATING.sub(_repeating, _unwrapped(text)))
    text = with_signs(text)
    for pattern, replacement in _OF_FORMULAS:
        text = pattern.sub(replacement, text)
    text = _REVERSED.sub(_with_round, text.translate(_SIGNS))
    return " ".join(text.split()).strip(" ;,:").removesuffix(".").strip()


_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*(?:\{\s*(\d+)\s*\}|(\d))")


def _repeating(match: re.Match[str]) -> str:
    r"""Return a repeating decimal such as `0.1\overline{6}` as a fraction."""
    whole, start, period = match[1] or "0", match[2], match[3] or match[4]
    top = int(whole + start + period) - int(whole + start)
    return rf"\frac{{{top}}}{{{'9' * len(period) + '0' * len(start)}}}"


_REVERSED = re.compile(
    r"(?<![\w)\]])([\[\]])([^\[\]();]{1,60}[;,][^\[\]();]{1,60})([\[\]])(?![\w(])"
)


def _with_round(match: re.Match[str]) -> str:
    """Return an interval `]a; b[` in round brackets; one in ordinary brackets as it is."""
    return f"{'(' if match[1] == ']' else '['}{match[2]}{')' if match[3] == '[' else ']'}"


def _ascii_digit(char: str) -> str:
    value = unicodedata.decimal(char, None) if char > "\x7f" else None
    return char if value is None else str(value)


def _unwrapped(text: str) -> str:
    r"""Replace `\text{…}` by its content between signs; of a variable or number only the content."""
    while match := WRAPPING.search(text):
        end = closing(text, match.end() - 1)
        if end is None:
            return text
        inner = text[match.end() : end]
        is_formula = not re.search(r"[A-Za-z]{2}|[^\x00-\x7f]", re.sub(r"\\[A-Za-z]+", "", inner))
        if is_formula and not match.group().startswith("\\text{"):
            kept = f" {inner} "
        else:
            kept = f"{_TEXT}{inner.replace(_TEXT, '').replace(_END, '')}{_END}"
        text = text[: match.start()] + kept + text[end + 1 :]
    return text

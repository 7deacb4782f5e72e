"""Writes TeX and the Unicode signs of formulas in one spelling, as the parser of formulas reads it."""

import re
import unicodedata

from evaluation.reading.text import plain

_REPLACED = (
    (re.compile(r"\\\\\s*\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in)\s*\]"), r"\\\\"),
    (
        re.compile(
            r"\\(?:left|right|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|middle)(?![A-Za-z])\s*\.?"
        ),
        "",
    ),
    (re.compile(r"\{,\}|(?<=\d)\\,(?=\d{3}(?!\d))"), "\ue000"),
    (re.compile(r"(?<=\d),\s*\\!\s*(?=\d{3})"), "\ue000"),
    (
        re.compile(
            r"(?<!\\)\\(?:(?:displaystyle|textstyle|limits|nolimits|quad|qquad|hfill)(?![A-Za-z])|[,;:>! ])"
        ),
        " ",
    ),
    (re.compile(r"\\(?:dfrac|tfrac|cfrac)(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:cdot|times|ast)(?![A-Za-z])|[·×⋅∗]"), "*"),
    (re.compile(r"\\div(?![A-Za-z])|÷"), "/"),
    (re.compile(r"\\(?:leq|leqslant|le)(?![A-Za-z])|≤|<="), "≤"),
    (re.compile(r"\\(?:geq|geqslant|ge)(?![A-Za-z])|≥|>="), "≥"),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\(?:neq|ne)(?![A-Za-z])"), "≠"),
    (re.compile(r"\\(?:approx|simeq)(?![A-Za-z])"), "≈"),
    (re.compile(r"\\pm(?![A-Za-z])|\+/-|\+-"), "±"),
    (re.compile(r"\\mp(?![A-Za-z])"), "∓"),
    (re.compile(r"\\infty(?![A-Za-z])|\binfinity\b"), "∞"),
    (re.compile(r"\\pi(?![A-Za-z])|\bpi\b"), "π"),
    (re.compile(r"\\cup(?![A-Za-z])"), "∪"),
    (re.compile(r"\\cap(?![A-Za-z])"), "∩"),
    (re.compile(r"\\in(?![A-Za-z])"), "∈"),
    (re.compile(r"\\(?:emptyset|varnothing)(?![A-Za-z])|\\\{\s*\\\}"), "∅"),
    (re.compile(r"\\(?:setminus|backslash)(?![A-Za-z])"), "∖"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z])|\bdegrees?\b"), "°"),
    (re.compile(r"\\(?:langle|lparen)(?![A-Za-z])|〈|⟨"), "("),
    (re.compile(r"\\(?:rangle|rparen)(?![A-Za-z])|〉|⟩"), ")"),
    (re.compile(r"\\(?:lbrack)(?![A-Za-z])"), "["),
    (re.compile(r"\\(?:rbrack)(?![A-Za-z])"), "]"),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\(?:lvert|rvert|vert|mid)(?![A-Za-z])"), "|"),
    (re.compile(r"\\(?:imath)(?![A-Za-z])"), "i"),
    (re.compile(r"\\(?:ell)(?![A-Za-z])"), "l"),
    (re.compile(r"\\(?:ldots|dots|cdots|dotsc)(?![A-Za-z])|\.\.\.|…"), "…"),
    (re.compile(r"\\(?:implies|Rightarrow|Longrightarrow|to|rightarrow|iff)(?![A-Za-z])|⇒|→"), "⇒"),
    (re.compile(r"\\%|％"), "%"),
    (re.compile(r"\\\$|(?<!\\)\$|\\\(|\\\)|\\\[|\\\]"), " "),
    (re.compile(r"\\(?:pounds|euro)(?![A-Za-z])|[€£¥₹]"), " "),
    (re.compile(r"\\&"), " and "),
    (re.compile(r"~"), " "),
    (re.compile(r"√\s*\("), r"\\sqrt("),
    (re.compile(r"√\s*(\d+|[a-z])"), r"\\sqrt{\1}"),
    (re.compile(r"\*\*\s*(?=[\d({-])"), "^"),
)
_WRAPPED = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|boldsymbol|operatorname\*?|textnormal|rm|bf|emph|underline|boxed|hbox)"
    r"\s*\{"
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_TEXT, _END = "\u27ea", "\u27eb"
"""Signs around what stands in `\\text{}`."""


def tidy(answer: str) -> str:
    r"""Return an answer in TeX with one spelling of each sign; the content of `\text{…}` is between ⟪ and ⟫.

    Args:
        answer: TeX or plain text, without its box.

    Returns:
        The text that `formulas.parse` reads.
    """
    text = re.sub(
        "[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ]+", lambda run: f"^{{{run[0].translate(_SUPERSCRIPTS)}}}", answer
    )
    text = re.sub("[₀-₉]+", lambda run: f"_{{{run[0].translate(_SUBSCRIPTS)}}}", text)
    text = plain(text.replace("\u00b0", "°")).replace("–", "-")
    text = "".join(_ascii_digit(char) for char in text)
    text = _REPEATING.sub(_repeating, _unwrapped(text))
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    text = re.sub(r"\*\*|__|`", "", text)
    return " ".join(text.split()).strip().strip(" ;,:").removesuffix(".").strip()


_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*(?:\{\s*(\d+)\s*\}|(\d))")


def _repeating(match: re.Match[str]) -> str:
    r"""Return a repeating decimal such as `0.1\overline{6}` as a fraction."""
    whole, start, period = match[1] or "0", match[2], match[3] or match[4]
    top = int(whole + start + period) - int(whole + start)
    return rf"\frac{{{top}}}{{{'9' * len(period) + '0' * len(start)}}}"


def _ascii_digit(char: str) -> str:
    value = unicodedata.decimal(char, None) if char > "\x7f" else None
    return char if value is None else str(value)


def _unwrapped(text: str) -> str:
    r"""Replace `\text{…}` by its content between signs; of a variable or number only the content."""
    from evaluation.reading.boxes import closing

    while match := _WRAPPED.search(text):
        end = closing(text, match.end() - 1)
        if end is None:
            return text
        inner = text[match.end() : end]
        is_formula = not re.search(r"[A-Za-z]{2}|[^\x00-\x7f]", re.sub(r"\\[A-Za-z]+", "", inner))
        is_formula = is_formula and not match.group().startswith("\\text{")
        kept = (
            f" {inner} "
            if is_formula
            else f"{_TEXT}{inner.replace(_TEXT, '').replace(_END, '')}{_END}"
        )
        text = text[: match.start()] + kept + text[end + 1 :]
    return text

r"""Verifiers of mathematical answers: kinds `boxed`, `math_verify` and `minerva`.

`boxed` compares the last `\boxed{}` in the spelling of the MATH benchmark (Hendrycks et al. 2021): `0.5`,
`\dfrac12`, `\frac{1}{2}` and `1/2` are equal, units and degrees are ignored, nothing is calculated.

`minerva` reads `Final Answer: The final answer is …`, the format of Minerva's prompts. It normalizes by
the rules of appendix D of Lewkowycz et al. (2022), with the corrections of lm-evaluation-harness:
units are whole words, `\left` does not contain `ft`, `0,1` is not a number.
"""

import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evaluation.reading.boxes import closing
from evaluation.settings.verifiers import Boxed, MathVerify, Minerva
from evaluation.verification.verdicts import Verdict, VerifierKind, different

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

_CLOSING = "I hope it is correct."

_FINAL = re.compile(r"Final Answer: The final answer is(.*?). I hope it is correct.")

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


def _verify_boxed(settings: Boxed, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that the last boxed answer equals the gold answer, both in the same spelling."""
    answer = _last_boxed(completion)
    if answer is None:
        return Verdict(credit=0.0, reason="no closed `\\boxed{}`")
    gold = answer_of(str(document["gold"]))
    if spelled(answer) == spelled(gold):
        return Verdict(credit=1.0, answer=answer)
    return Verdict(credit=0.0, answer=answer, reason=different(answer, gold))


def _verify_math(settings: MathVerify, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that math-verify finds an answer in the completion, equal to the gold answer."""
    from math_verify import verify

    gold = str(document["gold"])
    parsed = _parsed(completion)
    answer = next((part for part in reversed(parsed) if isinstance(part, str)), None)
    if not parsed:
        return Verdict(credit=0.0, reason="no number or formula found")
    # The caller limits the time: math-verify's alarms need the main thread, and do not stop everything.
    if verify(_parsed_gold(gold), parsed, timeout_seconds=None):
        return Verdict(credit=1.0, answer=answer)
    return Verdict(credit=0.0, answer=answer, reason=different(answer or "it", answer_of(gold)))


def _in_a_box(settings: Boxed | MathVerify, document: Mapping[str, Any]) -> str:
    return f"\\boxed{{{answer_of(str(document['gold']))}}}"


def _bare(settings: Boxed | MathVerify, answer: str) -> str:
    return spelled(answer.strip().rstrip("."))


@lru_cache(maxsize=256)
def _parsed_gold(gold: str) -> list[Any]:
    """Parse a gold; a bare answer is first put into a box, as math-verify looks for answers there."""
    return _parsed(gold if "\\boxed" in gold else f"\\boxed{{{gold}}}")


def _parsed(text: str) -> list[Any]:
    from math_verify import parse

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of missing limits
    return list(parse(text, parsing_timeout=None))


def _load() -> None:
    """Import sympy and its TeX parser with its tables, which takes seconds."""
    from sympy.parsing.latex import parse_latex

    _parsed("$\\frac{1}{2}$")
    parse_latex("\\frac{1}{2}")


def _last_boxed(text: str) -> str | None:
    r"""Return the content of the last `\boxed{…}`, `\boxed 5$` or `\fbox{…}`; None if not closed."""
    mark = next((mark for mark in _MARKS if mark in text), None)
    if mark is None:
        return None
    rest = text.rpartition(mark)[2]
    if rest.startswith("{"):
        end = closing(rest, 0)
        return None if end is None else rest[1:end]
    return rest.partition("$")[0].strip() or None if rest.startswith(" ") else None


def answer_of(gold: str) -> str:
    r"""Return what the last `\boxed{}` of a gold holds, which may be a whole solution; all of it without."""
    boxed = _last_boxed(gold)
    return gold if boxed is None else boxed


def spelled(answer: str) -> str:
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


def _in_the_sentence(settings: Minerva, document: Mapping[str, Any]) -> str:
    return f"Final Answer: The final answer is ${answer_of(str(document['gold']))}$. {_CLOSING}"


def _normalized_answer(settings: Minerva, answer: str) -> str:
    return _normalized(answer.strip().rstrip("."))


def _verify_minerva(settings: Minerva, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that the final answer equals the gold answer, both normalized, as text or by sympy."""
    answer = _final_answer(completion)
    if answer is None:
        return Verdict(credit=0.0, reason="no `Final Answer: The final answer is …`")
    gold = _normalized(answer_of(str(document["gold"])))
    if _are_equivalent(_normalized(answer), gold):
        return Verdict(credit=1.0, answer=answer)
    return Verdict(credit=0.0, answer=answer, reason=different(answer, gold))


def _final_answer(completion: str) -> str | None:
    """Return the answer in the first such sentence, which a stop string may have cut off."""
    match = _FINAL.search(completion + _CLOSING)
    return match.group(1).strip() if match else None


def _normalized(answer: str) -> str:
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


@lru_cache(maxsize=1024)
def _are_equivalent(answer: str, gold: str) -> bool:
    """Return whether two normalized answers are equal and not empty, or sympy finds a difference of 0."""
    if answer == gold:
        return bool(answer)
    from sympy import simplify
    from sympy.parsing.latex import parse_latex

    try:
        return bool(simplify(parse_latex(answer) - parse_latex(gold)) == 0)
    except (MemoryError, ImportError):
        raise
    except Exception:  # noqa: BLE001 - a parser may raise anything for a model's text
        return False


BOXED = VerifierKind(_verify_boxed, _in_a_box, _load, _bare)
MATH_VERIFY = VerifierKind(_verify_math, _in_a_box, _load, _bare)
MINERVA = VerifierKind(_verify_minerva, _in_the_sentence, _load, _normalized_answer)

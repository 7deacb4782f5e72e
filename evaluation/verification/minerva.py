"""`Final Answer: The final answer is …`, as solutions of MATH are verified since Minerva.

The rules of normalization are those of appendix D of Lewkowycz et al. (2022), with the corrections
that lm-evaluation-harness made to them: units are words, `\\left` is no `ft`, `0,1` is no number.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evaluation.settings.verifiers import Minerva
from evaluation.verification.mathematics import answer_of, load
from evaluation.verification.verdicts import Kind, Verdict, different

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
    (r".*?\$(.*?)\$.*", r"$\1$"),
    (r"\\text\{(.*?)\}", r"\1"),
    (r"\\textbf\{(.*?)\}", r"\1"),
    (r"\\overline\{(.*?)\}", r"\1"),
    (r"\\boxed\{(.*)\}", r"\1"),
    (r"frac([^{])(.)", r"frac{\1}{\2}"),
    (r"sqrt(\[[^\]]*\])(\w)", r"sqrt\1{\2}"),
    (r"sqrt(?!\[)([^{])", r"sqrt{\1}"),
)


def _in_the_sentence(settings: Minerva, document: Mapping[str, Any]) -> str:
    return f"Final Answer: The final answer is ${answer_of(str(document['gold']))}$. {_CLOSING}"


def _bare(settings: Minerva, answer: str) -> str:
    return _normalized(answer.strip().rstrip("."))


def _verify(settings: Minerva, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that the final answer is the gold one, as text or by sympy, both normalized."""
    answer = _final_answer(completion)
    if answer is None:
        return Verdict(credit=0.0, reason="no `Final Answer: The final answer is …`")
    gold = _normalized(answer_of(str(document["gold"])))
    if _are_equivalent(_normalized(answer), gold):
        return Verdict(credit=1.0, answer=answer)
    return Verdict(credit=0.0, answer=answer, reason=different(answer, gold))


def _final_answer(completion: str) -> str | None:
    """The answer in the first such sentence; one that the stop string cut off counts as well."""
    match = _FINAL.search(completion + _CLOSING)
    return match.group(1).strip() if match else None


def _normalized(answer: str) -> str:
    """An answer without units and layout, in the long form of TeX's short ones."""
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
    """Words are left alone inside the names of TeX's commands."""
    if not removed.isalpha():
        return answer.replace(removed, "")
    if removed not in answer:
        return answer
    return re.sub(rf"(\\[a-zA-Z]+)|{removed}", lambda match: match.group(1) or "", answer)


@lru_cache(maxsize=1024)
def _are_equivalent(answer: str, gold: str) -> bool:
    """Whether two normalized answers are one text, not empty, or differ by what sympy shows is 0."""
    if answer == gold:
        return bool(answer)
    from sympy import simplify
    from sympy.parsing.latex import parse_latex

    try:
        return bool(simplify(parse_latex(answer) - parse_latex(gold)) == 0)
    except (MemoryError, ImportError):
        raise
    except Exception:  # noqa: BLE001 - what a parser raises for a model's text has no limits
        return False


MINERVA = Kind(_verify, _in_the_sentence, load, _bare)

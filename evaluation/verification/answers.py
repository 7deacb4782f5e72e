r"""Verifiers that extract an answer and compare it with the gold, as other harnesses do, faults included.

pattern      a regular expression of the suite, as lm-evaluation-harness's filters (GSM8K's `#### 18`)
boxed        the last `\boxed{}` in the spelling of the MATH benchmark (Hendrycks et al. 2021)
minerva      `Final Answer: The final answer is …` by lm-evaluation-harness's `minerva_math` (`exact_match`)
math_verify  whatever math-verify's `parse` finds, compared by its `verify`

`extract` never sees the gold, so that no gold can choose among several readings of a completion.
"""

import logging
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from evaluation.settings.verifiers import Boxed, MathVerify, Minerva, Pattern
from evaluation.verification.math_spelling import (
    gold_answer,
    last_boxed,
    math_spelling,
    minerva_spelling,
)


@dataclass(frozen=True)
class Extraction:
    """An extracted answer: its text, and the value that is compared, which may be the text itself."""

    text: str
    value: Any


@dataclass(frozen=True)
class AnswerKind:
    """A kind of verifier that extracts an answer from a completion and compares it with the gold.

    `in_form` writes a gold as a right completion does, with which golds are checked before anything is
    generated. `bare` maps all spellings of an answer that count as one vote to one text.
    """

    extract: Callable[[Any, str], Extraction | None]
    same: Callable[[Any, Any, str], bool]
    in_form: Callable[[Any, str], str]
    bare: Callable[[Any, str], str]
    load: Callable[[], None] | None = None

    def right(self, settings: Any, document: Mapping[str, Any]) -> str:
        """Return a completion that is right for a document."""
        return self.in_form(settings, str(document["gold"]))


_compiled = lru_cache(maxsize=256)(re.compile)


def _match(settings: Pattern, completion: str) -> Extraction | None:
    """Return the first group of the first or last match that matched and is not empty."""
    matches = _compiled(settings.pattern).finditer(completion)
    first = islice(matches, 1) if settings.take == "first" else matches
    match = next(iter(deque(first, maxlen=1)), None)
    groups = (match.groups() if match.re.groups else (match.group(),)) if match else ()
    text = next((group.strip() for group in groups if group), None)
    return None if text is None else Extraction(text, text)


def bare(settings: Pattern, text: str) -> str:
    """Return the text that a pattern compares: without its ignored parts, or without case."""
    for ignored in settings.ignore:
        text = _compiled(ignored).sub("", text)
    return text.lower() if settings.ignore_case else text


PATTERN = AnswerKind(
    _match,
    lambda settings, value, gold: bare(settings, value) == bare(settings, gold),
    lambda settings, gold: settings.form.replace("{gold}", gold),
    bare,
)


def _boxed(settings: Boxed, completion: str) -> Extraction | None:
    text = last_boxed(completion)
    return None if text is None else Extraction(text, math_spelling(text))


def _is_boxed(settings: Boxed, value: str, gold: str) -> bool:
    return value == math_spelling(gold_answer(gold))


def _in_a_box(settings: Boxed | MathVerify, gold: str) -> str:
    return f"\\boxed{{{gold_answer(gold)}}}"


def _vote(settings: Boxed | MathVerify, answer: str) -> str:
    return math_spelling(answer.strip().rstrip("."))


_HOPE = "I hope it is correct."
_FINAL = re.compile(r"Final Answer: The final answer is(.*?). I hope it is correct.")


def _final(settings: Minerva, completion: str) -> Extraction | None:
    """Return the answer in the first such sentence, which a stop string may have cut off."""
    match = _FINAL.search(completion + _HOPE)
    text = match.group(1).strip() if match else None
    return None if text is None else Extraction(text, minerva_spelling(text))


def _is_final(settings: Minerva, value: str, gold: str) -> bool:
    return _are_equivalent(value, minerva_spelling(gold_answer(gold)))


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


def _in_the_sentence(settings: Minerva, gold: str) -> str:
    return f"Final Answer: The final answer is ${gold_answer(gold)}$. {_HOPE}"


def _minerva_vote(settings: Minerva, answer: str) -> str:
    return minerva_spelling(answer.strip().rstrip("."))


def _parsed(settings: MathVerify, completion: str) -> Extraction | None:
    """Return what math-verify finds: the text of its answer, and all that `parse` returns."""
    found = _parse(completion)
    text = next((part for part in reversed(found) if isinstance(part, str)), "")
    return Extraction(text, found) if found else None


def _is_equal(settings: MathVerify, value: list[Any], gold: str) -> bool:
    from math_verify import verify

    # The caller limits the time: math-verify's alarms need the main thread, and do not stop everything.
    return bool(verify(_parse_gold(gold), value, timeout_seconds=None))


@lru_cache(maxsize=256)
def _parse_gold(gold: str) -> list[Any]:
    """Parse a gold; a bare answer is first put into a box, as math-verify looks for answers there."""
    return _parse(gold if "\\boxed" in gold else f"\\boxed{{{gold}}}")


def _parse(text: str) -> list[Any]:
    from math_verify import parse

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of missing limits
    return list(parse(text, parsing_timeout=None))


def _load() -> None:
    """Import sympy and its TeX parser with its tables, which takes seconds."""
    from sympy.parsing.latex import parse_latex

    _parse("$\\frac{1}{2}$")
    parse_latex("\\frac{1}{2}")


BOXED = AnswerKind(_boxed, _is_boxed, _in_a_box, _vote)
MINERVA = AnswerKind(_final, _is_final, _in_the_sentence, _minerva_vote, _load)
MATH_VERIFY = AnswerKind(_parsed, _is_equal, _in_a_box, _vote, _load)

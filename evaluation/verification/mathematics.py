r"""Mathematical answers: the text in `\boxed{}`, or anything that means the same number or set."""

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evaluation.settings.verifiers import Boxed, MathVerify
from evaluation.verification.boxes import answer_of, last_boxed, spelled
from evaluation.verification.verdicts import Verdict, different


def verify_boxed(settings: Boxed, document: Mapping[str, Any], completion: str) -> Verdict:
    """Whether the last boxed answer is the gold one, in the same spelling."""
    answer = last_boxed(completion)
    if answer is None:
        return Verdict(credit=0.0, reason="no closed `\\boxed{}`")
    gold = answer_of(str(document["gold"]))
    if spelled(answer) == spelled(gold):
        return Verdict(credit=1.0, answer=answer)
    return Verdict(credit=0.0, answer=answer, reason=different(answer, gold))


def verify_math(settings: MathVerify, document: Mapping[str, Any], completion: str) -> Verdict:
    """Whether math-verify finds an answer in the completion, and it equals the gold one."""
    from math_verify import verify

    gold = str(document["gold"])
    found = _parsed(completion)
    answer = next((part for part in reversed(found) if isinstance(part, str)), None)
    if not found:
        return Verdict(credit=0.0, reason="no number or formula found")
    # Whoever calls this limits its time: alarms need the main thread, and do not stop all it does.
    if verify(_parsed_gold(gold), found, timeout_seconds=None):
        return Verdict(credit=1.0, answer=answer)
    return Verdict(credit=0.0, answer=answer, reason=different(answer or "it", answer_of(gold)))


def in_a_box(settings: Boxed | MathVerify, document: Mapping[str, Any]) -> str:
    """The gold answer as a right completion writes it."""
    return f"\\boxed{{{answer_of(str(document['gold']))}}}"


def bare_boxed(settings: Boxed | MathVerify, answer: str) -> str:
    """One spelling of an answer, without the full stop of its sentence; nothing is calculated."""
    return spelled(answer.strip().rstrip("."))


@lru_cache(maxsize=256)
def _parsed_gold(gold: str) -> list[Any]:
    """A solution is read as a completion is; an answer alone is put where answers are looked for."""
    return _parsed(gold if "\\boxed" in gold else f"\\boxed{{{gold}}}")


def _parsed(text: str) -> list[Any]:
    from math_verify import parse

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of limits turned off
    return list(parse(text, parsing_timeout=None))


def load_math() -> None:
    """Imports sympy and what reads TeX, which takes seconds, and the tables that come with it."""
    from sympy.parsing.latex import parse_latex

    _parsed("$\\frac{1}{2}$")
    parse_latex("\\frac{1}{2}")

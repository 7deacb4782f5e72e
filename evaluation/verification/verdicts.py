"""A verifier's verdict on a completion, and the functions of a kind of verifier."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

UNFINISHED, OUT_OF_TIME, OUT_OF_MEMORY = "unfinished", "out_of_time", "out_of_memory"
"""Notes of verdicts on texts without an answer, and on those that exceed a limit."""


INVALID = "invalid"
"""Note of a verdict without credit whose settings or document a verifier cannot use at all."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A verdict. `credit` is in [0, 1]; None if the verifier crashed, or the machine was too busy.

    `answer` is the extracted answer; None if the completion has none in the expected format. `reason`
    states why there is no full credit: the failing assertion, the instruction that was not followed,
    or how the verifier failed. `weight` is the completion's weight in the verifier's rate, such as the
    number of its instructions. `note` names a fact that is counted separately: that the model's thinking
    is unfinished, or that verifying the text takes more time or memory than allowed.
    """

    credit: float | None
    answer: str | None = None
    reason: str = ""
    weight: float = 1.0
    note: str = ""


@dataclass(frozen=True)
class JudgedKind:
    """A kind of verifier that judges an answer as a whole, such as a program.

    `right` returns a correct completion for a document (None if it has none), with which golds are
    checked before anything is generated. `load` imports slow libraries in advance.
    """

    verify: Callable[[Any, Mapping[str, Any], str], Verdict]
    right: Callable[[Any, Mapping[str, Any]], str | None]
    load: Callable[[], None] | None = None


def shortened(text: str, longest: int = 200) -> str:
    """Return a text on one line with single spaces; an ellipsis marks a cut."""
    words = " ".join(text[: 2 * longest].split())
    return words if len(words) <= longest and len(text) <= 2 * longest else f"{words[:longest]}…"


def unless_unfinished(verdict: Verdict, is_unfinished: bool) -> Verdict:
    """Return the verdict on a completion; one whose thinking is unfinished has no answer and no credit.

    Args:
        verdict: A verifier's verdict on an empty text, if the thinking is unfinished; its weight stays.
        is_unfinished: Whether the end of the thinking never comes.
    """
    if not is_unfinished:
        return verdict
    reason = "the model's thinking is unfinished, so there is no answer"
    return replace(verdict, credit=0.0, answer=None, reason=reason, note=UNFINISHED)

"""A verifier's verdict on a completion, and what a kind of verifier consists of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`credit` in [0, 1]; None where the verifier itself failed: it crashed, hung, or ran out of memory.

    `answer` is what it took for the answer, None where the completion has none in its format.
    `reason` is a sentence on why there is no full credit: the failing assertion, the instruction
    that was not followed, what became of the verifier. `weight` is what the completion counts in the
    verifier's rate, as the number of its instructions. `note` names what is counted separately, as
    that a program's pass rests on one of two runs alone (`sandbox.model.ProgramVerdict`).
    """

    credit: float | None
    answer: str | None = None
    reason: str = ""
    weight: float = 1.0
    note: str = ""


@dataclass(frozen=True)
class VerifierKind:
    """A kind of verifier.

    `verify` takes a verifier's settings, a prompt's document and a completion, cut at its stops.
    `right` gives a completion that is right by a document, by which golds are checked before anything
    is generated; None if the document has none. `load` imports its libraries, if that takes long.
    `bare` gives one text for all spellings of a wrong answer that the kind takes for the same; None
    where an answer is no value, as a program.
    """

    verify: Callable[[Any, Mapping[str, Any], str], Verdict]
    right: Callable[[Any, Mapping[str, Any]], str | None]
    load: Callable[[], None] | None = None
    bare: Callable[[Any, str], str] | None = None


def different(answer: str, gold: str) -> str:
    """Return the reason of a wrong answer, both of them cut to what a reader can take in.

    Args:
        answer: What the verifier took for the answer.
        gold: The gold answer, in the form in which they were compared.

    Returns:
        A sentence without its full stop.
    """
    return f"{shortened(answer)} is not {shortened(gold)}"


def shortened(text: str, longest: int = 200) -> str:
    """Return a text on one line, its end left out where it is long.

    Args:
        text: Any text.
        longest: Characters that are kept.

    Returns:
        The text with single spaces; an ellipsis marks what is left out.
    """
    words = " ".join(text[: 2 * longest].split())
    return words if len(words) <= longest and len(text) <= 2 * longest else f"{words[:longest]}…"

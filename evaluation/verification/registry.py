"""Verifiers by their kind: one entry has all that belongs to a kind. All checks of probes are one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.settings.checks import Check
from evaluation.settings.verifiers import Judge, Provided, Verifier
from evaluation.verification.checks.registry import MODELS as CHECK_MODELS
from evaluation.verification.checks.registry import verify_check
from evaluation.verification.instructions import load_libraries, some_text, verify_instructions
from evaluation.verification.mathematics import (
    bare_boxed,
    in_a_box,
    load_math,
    verify_boxed,
    verify_math,
)
from evaluation.verification.minerva import bare_minerva, in_the_sentence, verify_minerva
from evaluation.verification.patterns import bare, in_form, verify_pattern
from evaluation.verification.programs import canonical, verify_program
from evaluation.verification.verdicts import Verdict, Verify

LIBRARIES: Mapping[str, Callable[[], None]] = {
    "mathematics": load_math,
    "instructions": load_libraries,
}
"""What takes seconds to import."""


@dataclass(frozen=True)
class Entry:
    """A kind of verifier.

    `verify` gives its verdicts. `right` gives a completion that is right by a document, by which golds
    are checked before anything is generated; None if the document has none. `library` is what it
    imports, if that takes long. `bare` gives one text for all spellings of a wrong answer that the
    kind takes for the same; None where an answer is no value, as a program.
    """

    verify: Verify
    right: Callable[[Any, Mapping[str, Any]], str | None]
    library: str = ""
    bare: Callable[[Any, str], str] | None = None


VERIFIERS: Mapping[str, Entry] = {
    "pattern": Entry(verify_pattern, in_form, bare=bare),
    "boxed": Entry(verify_boxed, in_a_box, "mathematics", bare_boxed),
    "minerva": Entry(verify_minerva, in_the_sentence, "mathematics", bare_minerva),
    "math_verify": Entry(verify_math, in_a_box, "mathematics", bare_boxed),
    "ifeval": Entry(verify_instructions, some_text, "instructions"),
    "ifbench": Entry(verify_instructions, some_text, "instructions"),
    "program": Entry(verify_program, canonical),
}


def verify(settings: Verifier | Check, document: Mapping[str, Any], completion: str) -> Verdict:
    """Return the verdict of one verifier, in this process and without limits; `pool` has them.

    Args:
        settings: Settings of a verifier or of a probe's check.
        document: Fields of the prompt's document; checks read none.
        completion: Text of a model, cut at its stops.

    Returns:
        The verdict.
    """
    if isinstance(settings, CHECK_MODELS):
        return verify_check(settings, completion)
    return VERIFIERS[settings.kind].verify(settings, document, completion)


def libraries_of(verifiers: Iterable[Verifier | Check]) -> list[str]:
    """Return the libraries that verifiers need.

    Args:
        verifiers: Settings of verifiers and of probes' checks.

    Returns:
        Keys of LIBRARIES, each once, in alphabetical order.
    """
    entries = [VERIFIERS.get(verifier.kind) for verifier in verifiers]
    return sorted({entry.library for entry in entries if entry} - {""})


def bare_answer(verifier: Judge) -> Callable[[str], str] | None:
    """Return the function that gives one text for all spellings of a verifier's wrong answer.

    Args:
        verifier: Settings of a verifier, or a provider's metric.

    Returns:
        `Entry.bare` of the kind; None where it has none, and for a provider's metric, whose
        equality is not known.
    """
    entry = None if isinstance(verifier, Provided) else VERIFIERS[verifier.kind]
    return partial(entry.bare, verifier) if entry is not None and entry.bare is not None else None

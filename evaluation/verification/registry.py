"""All kinds of verifiers by name, and `verify` for these and the checks of probes."""

from collections.abc import Mapping
from typing import Any

from evaluation.settings.checks import Check, CheckSettings
from evaluation.settings.verifiers import Verifier
from evaluation.verification.answers import BOXED, MATH_VERIFY, MINERVA, PATTERN, AnswerKind
from evaluation.verification.checks.registry import verify_check
from evaluation.verification.instructions import INSTRUCTIONS
from evaluation.verification.programs import PROGRAM
from evaluation.verification.verdicts import JudgedKind, Verdict, shortened

VERIFIERS: Mapping[str, AnswerKind | JudgedKind] = {
    "pattern": PATTERN,
    "boxed": BOXED,
    "minerva": MINERVA,
    "math_verify": MATH_VERIFY,
    "ifeval": INSTRUCTIONS,
    "ifbench": INSTRUCTIONS,
    "program": PROGRAM,
}


def verify(settings: Verifier | Check, document: Mapping[str, Any], completion: str) -> Verdict:
    """Return the verdict of one verifier, in this process; only `pool` sets limits.

    An extracted answer gets full credit if it is the document's `gold`, else none.

    Args:
        document: Fields of the prompt's document; checks read none.
        completion: Text of a model, cut at its stop strings.
    """
    if isinstance(settings, CheckSettings):
        return verify_check(settings, completion)
    kind = VERIFIERS[settings.kind]
    if isinstance(kind, JudgedKind):
        return kind.verify(settings, document, completion)
    answer, gold = kind.extract(settings, completion), str(document["gold"])
    if answer is None:
        return Verdict(credit=0.0, reason="no answer in the expected form")
    if kind.same(settings, answer.value, gold):
        return Verdict(credit=1.0, answer=answer.text)
    reason = f"{shortened(answer.text)} is not {shortened(gold)}"
    return Verdict(credit=0.0, answer=answer.text, reason=reason)

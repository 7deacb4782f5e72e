"""All kinds of verifiers by name, and `verify` for these and the checks of probes."""

from collections.abc import Mapping
from typing import Any

from evaluation.settings.checks import Check
from evaluation.settings.verifiers import Verifier
from evaluation.verification.checks.registry import MODELS as CHECK_MODELS
from evaluation.verification.checks.registry import verify_check
from evaluation.verification.final_answers import MATHEMATICS
from evaluation.verification.instructions import INSTRUCTIONS
from evaluation.verification.mathematics import BOXED, MATH_VERIFY, MINERVA
from evaluation.verification.numbers import NUMBER
from evaluation.verification.patterns import PATTERN
from evaluation.verification.programs import PROGRAM
from evaluation.verification.verdicts import Verdict, VerifierKind

VERIFIERS: Mapping[str, VerifierKind] = {
    "pattern": PATTERN,
    "number": NUMBER,
    "mathematics": MATHEMATICS,
    "boxed": BOXED,
    "minerva": MINERVA,
    "math_verify": MATH_VERIFY,
    "ifeval": INSTRUCTIONS,
    "ifbench": INSTRUCTIONS,
    "program": PROGRAM,
}


def verify(settings: Verifier | Check, document: Mapping[str, Any], completion: str) -> Verdict:
    """Return the verdict of one verifier, in this process; only `pool` sets limits.

    Args:
        document: Fields of the prompt's document; checks read none.
        completion: Text of a model, cut at its stop strings.
    """
    if isinstance(settings, CHECK_MODELS):
        return verify_check(settings, completion)
    return VERIFIERS[settings.kind].verify(settings, document, completion)

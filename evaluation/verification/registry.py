"""All kinds of verifiers by name, and `verify` for these and the checks of probes."""

from collections.abc import Mapping
from typing import Any

from evaluation.settings.checks import Check, CheckSettings
from evaluation.settings.verifiers import Verifier
from evaluation.verification.answers import BOXED, MATH_VERIFY, MINERVA, PATTERN, AnswerKind
from evaluation.verification.checks.registry import verify_check
from evaluation.verification.instructions import INSTRUCTIONS
from evaluation.verification.programs import PROGRAM
from evaluation.verification.verdicts import JudgedKind, Verdict

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

    Args:
        document: Fields of the prompt's document; checks read none.
        completion: Text of a model, cut at its stop strings.
    """
    if isinstance(settings, CheckSettings):
        return verify_check(settings, completion)
    return VERIFIERS[settings.kind].verify(settings, document, completion)

"""Verifiers by the `kind` of their settings."""

from collections.abc import Mapping
from typing import Any, get_args

from evaluation.errors import ConfigError
from evaluation.settings.verifiers import Verifier
from evaluation.verification.instructions import verify_instructions
from evaluation.verification.mathematics import verify_boxed, verify_math
from evaluation.verification.minerva import verify_minerva
from evaluation.verification.patterns import verify_pattern
from evaluation.verification.programs import verify_program
from evaluation.verification.verdicts import Verdict, Verify

KINDS: tuple[str, ...] = tuple(
    get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(Verifier)[0])
)
"""Every kind that a suite may ask for."""


def complete(registry: Mapping[str, Verify]) -> Mapping[str, Verify]:
    """A registry of verifiers by kind, which must have one for each."""
    if set(registry) != set(KINDS):
        raise ConfigError(
            f"VERIFIERS has {', '.join(registry)}, but the kinds are {', '.join(KINDS)}; register "
            "what is missing"
        )
    return registry


VERIFIERS = complete(
    {
        "pattern": verify_pattern,
        "boxed": verify_boxed,
        "minerva": verify_minerva,
        "math_verify": verify_math,
        "ifeval": verify_instructions,
        "ifbench": verify_instructions,
        "program": verify_program,
    }
)


def verify(settings: Verifier, document: Mapping[str, Any], completion: str) -> Verdict:
    """The verdict of one verifier, in this process and without limits; `pool` has them."""
    return VERIFIERS[settings.kind](settings, document, completion)

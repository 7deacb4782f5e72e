"""Settings of the verifiers of generated answers.

A verifier is one view of a completion. It reads the fields of the task's `document` that it names
in `NEEDS`; the code of each kind is registered in `verification.registry`.
"""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from evaluation.settings.model import Boolean, Fraction, Integer, Settings, Text


def _compiled(expression: str) -> str:
    try:
        re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{expression!r} is not a regular expression: {error}") from None
    return expression


_Expression = Annotated[Text, AfterValidator(_compiled)]


class _Verifier(Settings):
    NEEDS: ClassVar[tuple[str, ...]] = ("gold",)


class Pattern(_Verifier):
    kind: Literal["pattern"] = Field(description="a pattern's match equals the gold.")
    pattern: _Expression = Field(description="Its first group counts.")
    take: Literal["first", "last"] = Field("first", description="Which match counts.")
    ignore: tuple[_Expression, ...] = Field((), description="Patterns removed on both sides.")
    ignore_case: Boolean = Field(False, description="Case does not count.")
    form: str = Field(
        "{gold}",
        pattern=r"\{gold\}",
        description="How a right completion writes the gold.",
    )


class Boxed(_Verifier):
    kind: Literal["boxed"] = Field(description="the last `\\boxed{}` equals the gold.")


class Minerva(_Verifier):
    kind: Literal["minerva"] = Field(
        description="`Final Answer: The final answer is …` equals the gold answer, as text or "
        "by sympy (Lewkowycz et al. 2022)."
    )


class MathVerify(_Verifier):
    kind: Literal["math_verify"] = Field(description="equal to the gold by math-verify.")


class _Instructions(_Verifier):
    NEEDS = ("prompt", "instruction_ids", "arguments")
    level: Literal["prompt", "instruction"] = Field(
        "prompt", description="All of a prompt, or their share."
    )
    mode: Literal["strict", "loose"] = Field(
        "strict", description="Loose: also without asterisks, first or last line."
    )


class IFEval(_Instructions):
    kind: Literal["ifeval"] = Field(description="instructions of google/IFEval.")


class IFBench(_Instructions):
    kind: Literal["ifbench"] = Field(description="instructions of allenai/IFBench.")


class Program(_Verifier):
    NEEDS = ("tests",)
    kind: Literal["program"] = Field(description="the code passes the tests.")
    raw: Boolean = Field(
        False, description="The completion is the code, after `prefix`; no fence is looked for."
    )
    seconds: Fraction = Field(10.0, ge=0.1, le=600, description="Time for all tests.")
    memory_mb: Integer = Field(1024, ge=64, le=2**24, description="Its memory, in MB.")


Verifier = Annotated[
    Pattern | Boxed | Minerva | MathVerify | IFEval | IFBench | Program,
    Field(discriminator="kind"),
]


class Provided(Settings):
    """A provider's metric, which is computed in the provider's own environment."""

    kind: Literal["provided"] = "provided"
    provider: str
    version: str
    task: str
    metric: str


AnyVerifier = Verifier | Provided
"""Anything that verifies completions: a built-in verifier, or a provider's metric."""

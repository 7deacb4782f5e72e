"""Verdicts on answers to probes, by the checks of `evaluation/checks/`."""

from collections import Counter
from collections.abc import Iterator, Sequence

from evaluation.checks.declared import CHECKS
from evaluation.settings.checks import Check, Counted
from evaluation.verification.sandbox.model import Limits, Tests
from evaluation.verification.sandbox.run import run_program
from evaluation.verification.verdicts import Verdict

LIMITS = Limits(seconds=5.0, memory_mb=512)
"""Limits for the code of one answer with all its tests."""


def verify_check(check: Check, completion: str) -> Verdict:
    """Verify an answer with a probe's check; the credit is 0 or 1, or None if the sandbox failed."""
    function = CHECKS[check.check]
    if isinstance(check, Counted):
        return Verdict(credit=float(check.holds(int(function(completion)))))
    settings = {key: getattr(check, key) for key in type(check).model_fields if key != "check"}
    found = function(completion, **settings)
    if not isinstance(found, str):
        return Verdict(credit=float(found))
    verdict = run_program(found, Tests(source=settings["tests"]), LIMITS)
    credit = None if verdict.passed is None else float(verdict.passed)
    return Verdict(credit=credit, reason=verdict.reason)


def named(checks: Sequence[Check]) -> Iterator[tuple[str, Check]]:
    """Yield a probe's checks under distinct names; a second one of a name is `name-2`, and so on."""
    seen: Counter[str] = Counter()
    for check in checks:
        seen[check.check] += 1
        number = seen[check.check]
        yield check.check if number == 1 else f"{check.check}-{number}", check

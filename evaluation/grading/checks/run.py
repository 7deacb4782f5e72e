"""Runs the checks of a probe on an answer."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.errors import SandboxError, ScoringError
from evaluation.grading.checks.registry import CHECKS
from evaluation.settings.check_kinds import Counted, Kind
from evaluation.settings.checks import Check
from evaluation.verification.sandbox.model import Outcome


@dataclass(frozen=True)
class CheckResult:
    """One check of one answer; a second check of a name is called `name-2`, and so on."""

    name: str
    kind: Kind
    passed: bool
    note: str = ""
    """Of code that is run: how its passing is counted (`sandbox.model.Outcome`)."""


def passes(check: Check, text: str) -> bool:
    """Whether an answer passes a check."""
    return _outcome(check, text).passed is True


def _outcome(check: Check, text: str) -> Outcome:
    found = CHECKS[check.check].function
    if isinstance(check, Counted):
        number = found(text)
        assert isinstance(number, int), check.check
        return Outcome(check.holds(number))
    keys = {key: getattr(check, key) for key in type(check).model_fields if key != "check"}
    told = found(text, **keys)
    return told if isinstance(told, Outcome) else Outcome(bool(told))


def run_checks(probe: str, checks: Sequence[Check], text: str) -> list[CheckResult]:
    """Results of all checks of a probe, in order.

    Raises:
        ScoringError: naming probe and check, where a check itself fails. An error is not a wrong
            answer.
        SandboxError: code cannot be run on this machine.
    """
    results = []
    seen: Counter[str] = Counter()
    for check in checks:
        seen[check.check] += 1
        number = seen[check.check]
        try:
            outcome = _outcome(check, text)
        except SandboxError:
            raise
        except Exception as error:
            raise ScoringError(
                f"probe {probe}: check {check.check} raised {type(error).__name__}: {error}; "
                "fix the check or take it out of the suite"
            ) from error
        name = check.check if number == 1 else f"{check.check}-{number}"
        results.append(CheckResult(name, check.kind, outcome.passed is True, outcome.note))
    return results

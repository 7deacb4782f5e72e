"""Every check by its name, and an answer run through the checks of a probe.

A new check is a model in `settings/checks.py` and a function of the check's name in a module here, to
which its settings are given by their names.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from evaluation.errors import ConfigError, SandboxError, ScoringError
from evaluation.grading.checks import cleanliness, code, layout, refusals, structured, wording
from evaluation.settings.check_kinds import Counted, Kind
from evaluation.settings.checks import Check
from evaluation.settings.model import Settings
from evaluation.verification.sandbox.model import Outcome

Function = Callable[..., bool | int | Outcome]
"""Called with the answer and the check's settings; that of a `Counted` check gives a number."""


def name_of(model: type[Settings]) -> str:
    """Return what a suite calls a check."""
    return str(get_args(model.model_fields["check"].annotation)[0])


def find_functions(models: Iterable[type[Settings]]) -> Mapping[str, Function]:
    """Return each check's function, which a module of MODULES has under the check's name.

    Raises:
        ConfigError: no module has it.
    """
    found = {
        name: getattr(m, name) for name in map(name_of, models) for m in MODULES if name in vars(m)
    }
    for model in models:
        if name_of(model) not in found:
            raise ConfigError(
                f"grading/checks has no function {name_of(model)!r}, which {model.__name__} is a check "
                "of; write one in a module of MODULES"
            )
    return found


MODULES = (cleanliness, code, layout, refusals, structured, wording)
CHECKS = find_functions(get_args(get_args(Check)[0]))
"""All checks."""


@dataclass(frozen=True)
class CheckResult:
    """One check of one answer; a second check of a name is called `name-2`, and so on."""

    name: str
    kind: Kind
    passed: bool
    note: str = ""
    """Result of code that is run: how its passing is counted (`sandbox.model.Outcome`)."""


def passes(check: Check, text: str) -> bool:
    """Return whether an answer passes a check."""
    return _outcome(check, text).passed is True


def _outcome(check: Check, text: str) -> Outcome:
    function = CHECKS[check.check]
    if isinstance(check, Counted):
        number = function(text)
        assert isinstance(number, int), check.check
        return Outcome(check.holds(number))
    keys = {key: getattr(check, key) for key in type(check).model_fields if key != "check"}
    found = function(text, **keys)
    return found if isinstance(found, Outcome) else Outcome(bool(found))


def run_checks(probe: str, checks: Sequence[Check], text: str) -> list[CheckResult]:
    """Return the results of all checks of a probe, in order.

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

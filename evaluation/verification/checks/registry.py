"""The function of every check of probes, by the check's name.

To add a check, add a model to `settings/checks.py` and a function to a module here. The function's name
is an underscore and the check's name; its arguments are the answer and the check's settings by name.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from evaluation.settings.check_kinds import Counted
from evaluation.settings.checks import Check
from evaluation.verification.checks import cleanliness, code, layout, phrases, refusals, structured
from evaluation.verification.sandbox.model import ProgramVerdict
from evaluation.verification.verdicts import Verdict

MODULES = (cleanliness, code, layout, refusals, structured, phrases)
MODELS: tuple[type[Any], ...] = get_args(get_args(Check)[0])

Function = Callable[..., bool | int | ProgramVerdict]
"""Takes the answer and the check's settings; that of a `Counted` check returns a number."""


CHECKS: Mapping[str, Function] = {
    name: ChainMap(*map(vars, MODULES))[f"_{name}"]
    for model in MODELS
    for name in get_args(model.model_fields["check"].annotation)
}


def verify_check(check: Check, completion: str) -> Verdict:
    """Verify an answer with a probe's check; the credit is 0 or 1, or None if the sandbox failed."""
    function = CHECKS[check.check]
    if isinstance(check, Counted):
        number = function(completion)
        assert isinstance(number, int), check.check
        return Verdict(credit=float(check.holds(number)))
    keys = {key: getattr(check, key) for key in type(check).model_fields if key != "check"}
    verdict = function(completion, **keys)
    if isinstance(verdict, ProgramVerdict):
        credit = None if verdict.passed is None else float(verdict.passed)
        return Verdict(credit=credit, reason=verdict.reason, note=verdict.note)
    return Verdict(credit=float(verdict))


def named(checks: Sequence[Check]) -> Iterator[tuple[str, Check]]:
    """Yield a probe's checks under distinct names; a second one of a name is `name-2`, and so on."""
    seen: Counter[str] = Counter()
    for check in checks:
        seen[check.check] += 1
        number = seen[check.check]
        yield check.check if number == 1 else f"{check.check}-{number}", check

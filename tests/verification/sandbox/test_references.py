"""Right programs pass in the sandbox and wrong ones do not, as in a plain interpreter."""

from pathlib import Path

import pytest

from evaluation.verification.sandbox.model import Limits
from evaluation.verification.sandbox.run import MODES, run_program
from tests.tables import sample
from tests.verification.sandbox.references import (
    HEAVY,
    Reference,
    human_eval,
    light_sample,
    mbpp,
    needs_sandbox,
    passes_unsandboxed,
    variants,
)

pytestmark = needs_sandbox
_LONG = Limits(seconds=60)


@pytest.mark.parametrize("mode", MODES)
def test_canonical_solutions_pass(shared: Path, mode: str) -> None:
    references = [*light_sample(human_eval(shared), 3), *light_sample(list(mbpp(shared)), 7)]
    failed = {}
    for reference in references:
        outcome = run_program(reference.program, reference.tests, _LONG, modes=[mode])
        if not outcome.passed:
            failed[reference.name] = outcome.reason
    assert failed == {}


@pytest.mark.parametrize("body", ["    pass", "    return None"])
def test_stubs_fail(shared: Path, body: str) -> None:
    references = light_sample(human_eval(shared), 3)
    stubs = [Reference(r.name, f"{r.tests.given}\n{body}\n", r.tests) for r in references]
    outcomes = {stub.name: run_program(stub.program, stub.tests, Limits()) for stub in stubs}
    assert {name for name, outcome in outcomes.items() if outcome.passed is not False} == set()
    assert all("gave None" in o.reason or "Error" in o.reason for o in outcomes.values())


def test_verdicts_are_those_of_a_plain_interpreter(shared: Path) -> None:
    references = [r for r in (*human_eval(shared), *mbpp(shared)) if not r.name.endswith(HEAVY)]
    differ, passed = {}, 0
    for variant in sample(5, variants(references, 200)):
        sandboxed = run_program(variant.program, variant.tests, Limits(seconds=2))
        passed += sandboxed.passed is True
        if sandboxed.passed is not passes_unsandboxed(variant, seconds=2):
            differ[variant.name] = (sandboxed, variant.program)
    assert differ == {}
    assert passed

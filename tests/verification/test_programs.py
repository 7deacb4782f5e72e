"""Programs are taken out of completions, run in the sandbox and given a verdict."""

import time
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.verifiers import Program
from evaluation.verification.registry import verify
from evaluation.verification.verdicts import Verdict
from tests.tables import cases
from tests.verification.sandbox.references import needs_sandbox

_MBPP = {"tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]}
_HUMAN_EVAL = {
    "tests": "def check(candidate):\n    assert candidate(1, 2) == twice(1.5)\n",
    "entry_point": "add",
    "prefix": 'import math\n\n\ndef twice(x):\n    return 2 * x\n\n\ndef add(a, b):\n    """Adds."""\n',
}


def _verdict(completion: str, document: dict[str, Any] = _MBPP, *, raw: bool = False) -> Verdict:
    verifier = Program(kind="program", seconds=5.0, memory_mb=512, raw=raw)
    return verify(verifier, document, completion)


@needs_sandbox
@pytest.mark.parametrize(
    ("completion", "credit"), cases("verification/programs", "without_a_prefix")
)
def test_answers_of_a_chat(completion: str, credit: float) -> None:
    assert _verdict(completion).credit == credit


@needs_sandbox
@pytest.mark.parametrize(("completion", "credit"), cases("verification/programs", "with_a_prefix"))
def test_answers_of_a_chat_that_continue_a_prefix(completion: str, credit: float) -> None:
    assert _verdict(completion, _HUMAN_EVAL).credit == credit


@needs_sandbox
@pytest.mark.parametrize(("completion", "credit"), cases("verification/programs", "raw"))
def test_completions_as_they_are(completion: str, credit: float) -> None:
    assert _verdict(completion, _HUMAN_EVAL, raw=True).credit == credit


@needs_sandbox
def test_the_verdict_tells_the_program_and_the_failing_assertion() -> None:
    wrong = "def add(a, b):\n    return a - b\n"
    reason = "`assert add(1, 2) == 3`: it is false"
    assert _verdict(f"```python\n{wrong}```") == Verdict(credit=0.0, answer=wrong, reason=reason)


@needs_sandbox
def test_tests_that_cannot_be_run_give_no_credit_and_no_failure() -> None:
    tests = ["import nothing_there\nassert add(1, 2) == 3"]
    assert _verdict("def add(a, b): return a + b", {"tests": tests}).credit is None


@pytest.mark.parametrize("tests", [None, 5, [], "", [1], {}])
def test_a_document_without_tests_is_refused(tests: object) -> None:
    with pytest.raises(ConfigError, match="`tests` of a document"):
        _verdict("def add(a, b): return a + b", {"tests": tests})


@needs_sandbox
@pytest.mark.parametrize(
    "text", ["`" * (1 << 20), "```\n" * 200_000, "~" * 3 + "\n" * 500_000, "def " * 200_000]
)
def test_long_completions_are_read_in_no_time(text: str) -> None:
    begin = time.process_time()
    assert _verdict(text).credit == 0
    assert time.process_time() - begin < 2

"""Problems of LiveCodeBench: scripts and methods, with tests as its rows hold them."""

import base64
import json
import pickle
import zlib
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.verifiers import Program
from evaluation.verification.programs import PROGRAM
from tests.shipped.mirrors import pack
from tests.tables import cases

SUM = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
MORE = [{"input": "5 6\n", "output": "11\n"}, {"input": "0 0", "output": "0"}]
ADD = [{"input": "1\n[2, 3]", "output": "6"}, {"input": "5\n[]", "output": "5"}]


def document(kind: str) -> dict[str, Any]:
    """A document as `benchmarks_chat` makes it of a row."""
    tests = (
        [json.dumps(SUM), pack(json.dumps(MORE))] if kind == "script" else [json.dumps(ADD), "[]"]
    )
    metadata = "{}" if kind == "script" else '{"func_name": "add"}'
    return {
        "tests": tests,
        "livecodebench": metadata,
        "prefix": "from typing import *\nimport sys\n",
    }


@pytest.mark.parametrize(
    ("kind", "program", "credit"), cases("verification/livecodebench", "programs")
)
def test_a_program(kind: str, program: str, credit: float) -> None:
    completion = f"First a try:\n```python\nprint('x')\n```\nThis is it:\n```python\n{program}```\n"
    verdict = PROGRAM.verify(Program(kind="program", seconds=5), document(kind), completion)
    assert verdict.credit == credit, verdict.reason


def packed(thing: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(thing))).decode()


@pytest.mark.parametrize("tests", [packed(print), packed({"a": Program}), "no base64", "[1"])
def test_tests_that_are_no_texts_are_refused_and_run_nothing(tests: str) -> None:
    wrong = {**document("script"), "tests": [tests]}
    with pytest.raises(ConfigError, match="not what LiveCodeBench's rows hold"):
        PROGRAM.verify(Program(kind="program"), wrong, "print(1)")

"""Tests of LiveCodeBench's problems, as the rows of its data set hold them.

A problem is solved by a method of a class `Solution`, or by a script that reads standard input. A script
becomes a function from input to output, so that its tests are those of a function.
"""

import base64
import io
import json
import pickle
import zlib
from collections.abc import Mapping
from typing import Any

from evaluation.errors import ConfigError
from evaluation.verification.sandbox.model import Tests

METADATA = "livecodebench"
"""Field of a document with the metadata of a problem; its `tests` are then texts of LiveCodeBench."""

_SAME = '''
def _number(word):
    try:
        return float(word)
    except ValueError:
        return word

def printed_as(printed, expected):
    """Whether lines are the same but for spaces at their ends, or in numbers written otherwise."""
    found = [line.strip() for line in printed.strip().split("\\n")]
    wanted = [line.strip() for line in expected.strip().split("\\n")]
    if len(found) != len(wanted):
        return False
    return all(
        mine == right or [_number(word) for word in mine.split()] == [_number(word) for word in right.split()]
        for mine, right in zip(found, wanted)
    )
'''

_RETURNED = """
def returned_as(value, expected):
    return (list(value) if isinstance(value, tuple) else value) == expected
"""

_RUN = """
def run_script(text):
    import io, sys
    before = sys.stdin, sys.stdout
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    sys.stdout = output
    try:
        exec(compile(_SCRIPT, "script", "exec"), {"__name__": "__main__"})
    except SystemExit:
        pass
    finally:
        sys.stdin, sys.stdout = before
    return output.buffer.getvalue().decode()
"""


def method_of(document: Mapping[str, Any]) -> str | None:
    """Return the name of the method that solves a problem; None where a script does.

    Raises:
        ConfigError: The document's field is not the metadata of a row.
    """
    try:
        metadata = json.loads(document[METADATA] or "{}")
        name = metadata.get("func_name")
    except (TypeError, ValueError, AttributeError):
        raise ConfigError(
            f"`{METADATA}` of a document is not the JSON that `metadata` holds in LiveCodeBench's rows; "
            f"write `{METADATA}: metadata`"
        ) from None
    return str(name) if name else None


def problem_tests(document: Mapping[str, Any]) -> Tests:
    """Return a problem's tests, public and private, as one source.

    Raises:
        ConfigError: `tests` are no texts of LiveCodeBench's rows.
    """
    cases = [case for text in document["tests"] for case in _cases(text)]
    method = method_of(document)
    if method is None:
        checks = [
            f"assert printed_as(run_script({case['input']!r}), {case['output']!r})"
            for case in cases
        ]
        return Tests(source="\n".join([_SAME, *checks]))
    checks = []
    for case in cases:
        given = ", ".join(repr(json.loads(line)) for line in case["input"].split("\n") if line)
        wanted = json.loads(case["output"])
        checks.append(f"assert returned_as(solution.{method}({given}), {wanted!r})")
    return Tests(source="\n".join([_RETURNED, "solution = Solution()", *checks]))


def as_function(script: str) -> str:
    """Return a program that defines `run_script`, which runs the script on a standard input."""
    return f"_SCRIPT = {script!r}\n{_RUN}"


def _cases(text: str) -> list[dict[str, str]]:
    """Return the cases of a text: JSON, or JSON that was pickled, compressed and written in base64."""
    try:
        if not text.lstrip().startswith("["):
            text = _Texts(io.BytesIO(zlib.decompress(base64.b64decode(text)))).load()
        cases: list[dict[str, str]] = json.loads(text)
    except (ValueError, TypeError, zlib.error, pickle.UnpicklingError, EOFError, AttributeError):
        raise ConfigError(
            "`tests` of a document are not what LiveCodeBench's rows hold; write `tests: "
            '"[public_test_cases, private_test_cases]"`'
        ) from None
    return cases


class _Texts(pickle.Unpickler):
    """Unpickles a text; a pickle that names anything to import or call is refused."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} in a text")

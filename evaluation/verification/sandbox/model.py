"""Inputs of a sandboxed run, and its verdict."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of each process of a run: seconds of computing, and memory above what it begins with."""

    seconds: float = 10.0
    memory_mb: int = 1024


@dataclass(frozen=True, kw_only=True)
class Tests:
    """Tests of a program: assert statements, or one source.

    A source that defines `check` needs the `entry_point` that it is called with; another calls the
    program by name. `setup` runs before the program, or after it where it uses what that defines.
    `given` is code that the program was to complete: in the guarded run, what it defines beside the
    entry point is the judge's own, so that a program cannot replace it.
    """

    __test__ = False

    asserts: tuple[str, ...] = ()
    source: str = ""
    setup: str = ""
    given: str = ""
    entry_point: str = ""

    def to_bytes(self) -> bytes:
        """Return the tests as JSON, for the sandbox's processes.

        Returns:
            What `from_bytes` reads.
        """
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Tests":
        """Read tests that `to_bytes` wrote.

        Args:
            data: The JSON.

        Returns:
            The same tests.
        """
        fields = json.loads(data)
        return cls(**{**fields, "asserts": tuple(fields["asserts"])})


UNGUARDED, FORGED = "unguarded", "forged"


@dataclass(frozen=True)
class ProgramVerdict:
    """`passed` is None where there is no verdict: tests that cannot be run, a machine too busy.

    `note` is "unguarded" for a pass that rests on the plain run alone, "forged" for a program that
    passes there and gives other values when it is asked from outside.
    """

    passed: bool | None
    reason: str = ""
    note: str = ""

    def to_bytes(self) -> bytes:
        """Return the verdict as JSON on one line.

        Returns:
            What `from_bytes` reads.
        """
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> "ProgramVerdict":
        """Read a verdict that `to_bytes` wrote.

        Args:
            data: The JSON.

        Returns:
            The verdict; half characters of foreign texts are replaced, as the reason goes into files.
        """
        fields = json.loads(data)
        reason = fields["reason"].encode("utf-8", "replace").decode()
        return cls(fields["passed"], reason, fields["note"])

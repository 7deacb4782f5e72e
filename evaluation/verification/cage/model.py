"""What a caged run is given, and what comes of it."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """For one program with all its tests; the judge has the same memory again."""

    seconds: float = 10.0
    memory_mb: int = 1024


@dataclass(frozen=True, kw_only=True)
class Tests:
    """Tests of a program: assert statements, or one source.

    A source that defines `check` needs the `entry_point` that it is called with; another calls the
    program by name. `setup` runs
    before the tests, by the judge. `given` is code that the program was to complete: what it
    defines beside the entry point is the judge's own, so that a program cannot replace it.
    """

    __test__ = False

    asserts: tuple[str, ...] = ()
    source: str = ""
    setup: str = ""
    given: str = ""
    entry_point: str = ""

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Tests":
        fields = json.loads(data)
        return cls(**{**fields, "asserts": tuple(fields["asserts"])})


@dataclass(frozen=True)
class Outcome:
    """`passed` is None where the tests themselves cannot be run."""

    passed: bool | None
    reason: str = ""

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> "Outcome":
        """Half characters of foreign texts are replaced: the reason goes into files."""
        fields = json.loads(data)
        return cls(fields["passed"], fields["reason"].encode("utf-8", "replace").decode())

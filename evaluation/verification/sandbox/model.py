"""Inputs of a sandboxed run, and its verdict."""

from dataclasses import dataclass


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
    entry point is the tester's own, so that a program cannot replace it.
    """

    __test__ = False

    asserts: tuple[str, ...] = ()
    source: str = ""
    setup: str = ""
    given: str = ""
    entry_point: str = ""


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

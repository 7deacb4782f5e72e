"""Inputs of a sandboxed run, and its verdict."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of each process of a run: CPU seconds, and memory added to what it uses at its start."""

    seconds: float = 10.0
    memory_mb: int = 1024


@dataclass(frozen=True, kw_only=True)
class Tests:
    """Tests of a program: assert statements, or one source.

    A source that defines `check` needs an `entry_point`, with which `check` is called; other sources call
    the program by name. `setup` runs before the program, or after it if it uses names of the program.
    `given` is the code that the program had to complete. In the guarded run, the tester uses its own
    copy of everything that `given` defines except the entry point: a program cannot replace it.
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
    """`passed` is None if there is no verdict: the tests cannot be run, or the machine is too busy.

    `note` is "unguarded" for a pass that only the plain run confirms, and "forged" for a program that
    passes the plain run but returns other values to the tester of the guarded run.
    """

    passed: bool | None
    reason: str = ""
    note: str = ""

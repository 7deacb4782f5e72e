"""Inputs of a sandboxed run, and its verdict."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a program with its tests: CPU seconds, and memory added to what Python itself takes."""

    seconds: float = 10.0
    memory_mb: int = 1024


@dataclass(frozen=True, kw_only=True)
class Tests:
    """Tests of a program: assert statements, or one source.

    A source that defines `check` needs an `entry_point`, with which `check` is called; other sources call
    the program by name. `setup` runs before the program, or after it if it uses names of the program.
    """

    __test__ = False

    asserts: tuple[str, ...] = ()
    source: str = ""
    setup: str = ""
    entry_point: str = ""


@dataclass(frozen=True)
class ProgramVerdict:
    """`passed` is None if there is no verdict: the tests cannot be run, or the machine is too busy."""

    passed: bool | None
    reason: str = ""

"""Inputs of a sandboxed run, and its verdict."""

from dataclasses import dataclass, field


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


@dataclass(frozen=True)
class Use:
    """What tests use: functions of the program, and classes of which they call only methods.

    `imports` are modules and their members, by name, that they use without importing them, as the
    program does. `modules` are those that they import. `returns` is whether they look at arguments
    after a call. `needs` is why plain data do not suffice; empty if they do.
    """

    functions: list[str]
    classes: list[str] = field(default_factory=list)
    imports: dict[str, list[str]] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    entry_point: str = ""
    returns: bool = False
    needs: str = ""


UNGUARDED, FORGED = "unguarded", "forged"


@dataclass(frozen=True)
class ProgramVerdict:
    """`passed` is None if there is no verdict: the tests cannot be run, or the machine is too busy.

    `note` is "unguarded" if the plain run decides alone, as the tests need more than plain data; and
    "forged" for a program that passes the plain run but not the guarded run.
    """

    passed: bool | None
    reason: str = ""
    note: str = ""

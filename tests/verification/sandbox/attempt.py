"""What a program may try against the machine that it runs on.

Each program defines `f`, which gives "escaped" where it gets through; some leave traces that are
looked for afterwards. `{folder}` is a folder that its user may write to, with a `secret.txt`;
`{victim}` is a process of its user, `{port}` one that listens, `{parent}` who runs the sandbox.
"""

import textwrap
from dataclasses import dataclass

MARK = "sandbox-escape"
"""Begins the name of every file that an attempt leaves."""


@dataclass(frozen=True)
class Attempt:
    name: str
    program: str
    asserts: tuple[str, ...] = ("assert f() == 'escaped'",)
    seconds: float = 10.0
    memory_mb: int = 512
    given: str = ""
    setup: str = ""
    works_unsandboxed: bool = False
    """Harmless enough to be run without a sandbox, to show that it is an attempt at all."""


def attempt(name: str, body: str, **fields: object) -> Attempt:
    """`body` is that of `f`; what raises there is stopped."""
    return Attempt(name, "def f():\n" + textwrap.indent(body, "    "), **fields)  # type: ignore[arg-type]


SYSCALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({call}) >= 0:
    return "escaped"
"""

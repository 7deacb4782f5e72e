"""A program as a module: found by its name, and its text by `inspect`, as that of a file would be."""

import linecache
import sys
from types import ModuleType
from typing import Any

from evaluation.verification.sandbox import alone

PROGRAM = "program"
FILE = f"<{PROGRAM}>"


def new_module(text: str) -> dict[str, Any]:
    """Return the names of an empty module for a program of this text."""
    alone.prepare()
    module = ModuleType(PROGRAM)
    module.__file__ = FILE
    sys.modules[PROGRAM] = sys.modules["__main__"] = module
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    return vars(module)


def load(text: str, names: dict[str, Any]) -> None:
    exec(compile(text, FILE, "exec", dont_inherit=True), names)


def set_up(setup: str, names: dict[str, Any]) -> bool:
    """Run what the tests set up, before the program; False if it needs the program."""
    try:
        exec(compile(setup, "<setup>", "exec", dont_inherit=True), names)
    except NameError:
        return False
    return True

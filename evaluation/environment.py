"""Checks Python's version and the installed packages, before modules that need them are imported.

Imports only the standard library, in syntax that an old Python can read.
"""

from __future__ import annotations

import shlex
import sys

from evaluation.root import IS_INSTALLED, ROOT

PYTHON = (3, 11)
NEEDED = ("pydantic", "yaml")
"""Packages that reading a configuration needs; larger ones are reported as missing when used."""


def missing_environment() -> str | None:
    """Return what is missing, and how to install it; None if nothing is."""
    if sys.version_info < PYTHON:
        return "Python {}.{} or newer is needed, and this is {} ({}); {}".format(
            *PYTHON, sys.version.split()[0], sys.executable, _how_to_install()
        )
    for package in NEEDED:
        try:
            __import__(package)
        except ModuleNotFoundError:
            return missing_package(package)
    return None


def missing_package(name: str) -> str:
    """Return a message that a package is missing, and how to install it."""
    return f"the package {name} is not installed for {sys.executable}; {_how_to_install()}"


def _how_to_install() -> str:
    """Return how to install the missing packages, or to activate the environment that has them."""
    activate = f"source {ROOT}/.venv/bin/activate"
    if IS_INSTALLED:
        return (
            f"run `pip install -r {shlex.quote(str(ROOT))}/locks/requirements.lock` and try again"
        )
    if (ROOT / ".venv" / "bin" / "python").exists():
        return f"run `{activate}` and try again"
    return f"run `make -C {ROOT} environment && {activate}` and try again"

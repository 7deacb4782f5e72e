"""All exceptions that the command line reports as one sentence, and the phrases that messages share.

Every message names the file, key or item, what was expected, and what to do.
"""

import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import ClassVar


class EvaluationError(Exception):
    """Base of all errors a user can fix; printed without a traceback, exit code 1."""

    is_final: ClassVar[bool] = False
    """Whether the checkpoint is at fault: others continue without it, and a retry is useless."""


class ConfigError(EvaluationError):
    """A configuration key, suite or argument is wrong."""


class SourceError(EvaluationError):
    """A dataset, mirror or tokenizer cannot be loaded or used."""


class CacheError(EvaluationError):
    """A prefilled cache is missing, foreign or corrupt."""


class CheckpointError(EvaluationError):
    """A checkpoint cannot be read."""

    is_final = True


class IncompleteCheckpoint(CheckpointError):
    """A checkpoint lacks a file or a slice of a tensor, or is still being written."""


class UnsupportedCheckpoint(CheckpointError):
    """No model class represents the checkpoint exactly."""


class OutputError(EvaluationError):
    """A path that the user named cannot be written to."""


class ScoringError(EvaluationError):
    """A score cannot be computed."""


class NonFiniteError(ScoringError):
    """The model gives NaN or infinite values."""

    is_final = True


class GpuFault(ScoringError):
    """The GPU failed during a run; this process cannot use it any more, but another one may."""


class NotEnoughMemory(ScoringError):
    """A GPU has too little memory; fewer tokens per forward pass, or fewer answers, may fit."""


class CommandError(ScoringError):
    """A stage's external command fails, or its output does not fit the suite."""

    is_final = True


class SandboxError(EvaluationError):
    """Generated programs cannot be run safely on this machine."""


class ResultsError(EvaluationError):
    """A file of a results folder is missing, damaged or of another version."""


class BridgeError(EvaluationError):
    """Two results differ in protocol, tokenizer or data and must not be compared."""


_KINDS = {
    "NoneType": "null", "bool": "true or false", "int": "a number", "float": "a number", "str": "text",
    "bytes": "binary data", "list": "a list", "tuple": "a list", "dict": "keys and values",
}  # fmt: skip


def kind_of(value: object) -> str:
    """Return the name of a value's type for authors of YAML and JSON, such as `a list`."""
    name = type(value).__name__
    return _KINDS.get(name, f"a {name}")


def one_line(error: BaseException) -> str:
    """Return the message of a library's error on one line, shortened, without what cannot be printed."""
    return printable(" ".join(str(error).split())[:300])


def reason_of(error: Exception) -> str:
    """Return the system's reason for an error, or else the first line of its text, or its class."""
    return getattr(error, "strerror", None) or one_line(error) or type(error).__name__


def with_class(error: BaseException) -> str:
    """Return an error's class and message on one line."""
    return f"{type(error).__name__}: {one_line(error)}".removesuffix(": ")


def first_few(names: Sequence[str], most: int = 6) -> str:
    """Return the first names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def no_such(what: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return that a name is unknown, and the known ones: `no WHAT 'NAME' WHERE (did you mean …?)…`."""
    names = list(known)
    there = ", ".join(names) or "none"
    return f"no {what} {name!r}{where}{did_you_mean(name, names)}; there are {there}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean …?)` with the most similar known name; empty if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def printable(text: str) -> str:
    """Return text whose unprintable characters, such as control characters, are escaped as in Python."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def printable_lines(text: str) -> str:
    """Return text of several lines, each made printable."""
    return "\n".join(map(printable, text.split("\n")))


def report(sentence: str) -> int:
    """Print an error, what is wrong and what to do, on stderr; return exit code 1."""
    print(f"error: {printable_lines(sentence)}", file=sys.stderr)
    return 1


def missing_package(name: str) -> str:
    """Return a message that a package is missing, and how to install it."""
    return f"the package {name} is not installed for {sys.executable}: install it, as `make environment` does"

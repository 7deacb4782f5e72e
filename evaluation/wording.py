"""Phrases for messages: kinds of values, the nearest known name, the first of many names, reasons, times."""

import contextlib
import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

_KINDS = {
    "NoneType": "null",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "str": "text",
    "bytes": "binary data",
    "list": "a list",
    "tuple": "a list",
    "dict": "keys and values",
}


def kind_of(value: object) -> str:
    """Return the name of a value's type for authors of YAML and JSON, such as `a list`."""
    name = type(value).__name__
    return _KINDS.get(name, f"a {name}")


def one_line(error: BaseException) -> str:
    """Return the message of a library's error on one line, shortened, without what cannot be printed."""
    text = " ".join(str(error).split())[:300]
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def reason_of(error: Exception) -> str:
    """Return the system's reason for an error, or else the first line of its text, or its class."""
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0][:300]
    return reason or type(error).__name__


def with_class(error: BaseException) -> str:
    """Return an error's class and message on one line."""
    return f"{type(error).__name__}: {one_line(error)}".removesuffix(": ")


def first_few(names: Sequence[str], most: int = 6) -> str:
    """Return the first names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def no_such(what: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return that a name is unknown, and which exist: `no WHAT 'NAME' WHERE (did you mean …?); there are …`.

    Args:
        where: Where it was looked up, with a leading space; shown after the name.
    """
    names = list(known)
    there = ", ".join(names) or "none"
    return f"no {what} {name!r}{where}{did_you_mean(name, names)}; there are {there}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean …?)` with the most similar known name; empty if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def near_path(path: Path, is_kind: Callable[[Path], bool] = Path.exists) -> str:
    """Return the same for the most similar name in a missing path's folder.

    Args:
        is_kind: Which neighbours could be meant: `Path.is_file` or `Path.is_dir`; by default both.
    """
    with contextlib.suppress(OSError):
        return did_you_mean(
            path.name, (near.name for near in path.parent.iterdir() if is_kind(near))
        )
    return ""


def time_in_words(seconds: float) -> str:
    """Return a duration in its largest fitting unit, such as `15 min`."""
    for size, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= size:
            value = seconds / size
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
    return f"{seconds:.1f} s"

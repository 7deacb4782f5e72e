"""Read JSON files of results as typed records; an error states in one sentence what is wrong with a file."""

import contextlib
import json
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluation.errors import ResultsError
from evaluation.files import load_json, write_json

RUN_AGAIN = "run Snakemake again with the configuration of that run"
"""How to make a stage's file again."""

COLLECT_AGAIN = (
    "collect this checkpoint again (`python -m evaluation collect --stage STAGE --step STEP`)"
)
"""How to make a checkpoint's file again."""

LONGEST = 60
"""Characters of a wrong value that a message shows."""


class FileModel(BaseModel):
    """The base of all files: known keys are checked, unknown ones, such as a later version's, are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


AnyFileModel = TypeVar("AnyFileModel", bound=FileModel)


def unusable(path: Path, what: str, again: str = COLLECT_AGAIN) -> ResultsError:
    """Return the error of a file that has to be made again."""
    return ResultsError(f"{path}: {what}; remove it and {again}")


def read_model(
    path: Path, model: type[AnyFileModel], again: str, version: tuple[str, str] | None = None
) -> AnyFileModel:
    """Read a file as a record; within `reading_once` the same one at every call.

    Args:
        again: How such a file is made, for messages.
        version: What wrote it, and the only version of its protocol that is read; None for any.

    Raises:
        ResultsError: The file is missing or cannot be read, a key is invalid, or its version is
            another.
    """
    cache = READ_FILES.get()
    if cache is not None and (path, model) in cache:
        cached: AnyFileModel = cache[path, model]
        return cached
    text = read_text(path, again)
    if version is not None:
        what, expected = version
        protocol = parse_json(path, text, again).get("protocol")
        if protocol != expected:
            raise unusable(
                path, f"written by {what} protocol {protocol!r}, not {expected!r}", again
            )
    record = parse_model(path, text, model, again)
    if cache is not None:
        cache[path, model] = record
    return record


class StageFile(FileModel):
    """A file of a stage, or of a comparison of runs, which Snakemake makes again."""

    VERSION: ClassVar[tuple[str, str] | None] = None
    """What wrote it, and the only version of its protocol that is read; None for any."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file; raise ResultsError if it is missing, invalid, or of another version."""
        return read_model(path, cls, RUN_AGAIN, cls.VERSION)


READ_FILES: ContextVar[dict[tuple[Path, type[FileModel]], Any] | None]
READ_FILES = ContextVar("read_files", default=None)
"""Files that were read within `results.read.reading_once`."""


def read_text(path: Path, again: str) -> str:
    """Read the text of a file of results.

    Args:
        again: How such a file is made, for messages.

    Raises:
        ResultsError: It is missing, not UTF-8, or cannot be read.
    """
    with _reading(path, again):
        return path.read_bytes().decode()


def read_records(
    path: Path, model: type[AnyFileModel], again: str
) -> Iterator[tuple[Path, AnyFileModel]]:
    """Yield the records of a file of JSON lines one by one, each with its place for messages.

    Args:
        again: How such a file is made, for messages.

    Raises:
        ResultsError: The file is missing or cannot be read, or a line is no such record.
    """
    with _reading(path, again), path.open("rb") as lines:
        # Only a line feed ends a line: texts in JSON may have other line separators.
        for number, line in enumerate(lines, start=1):
            if line.strip():
                where = path.with_name(f"{path.name}, line {number}")
                yield where, parse_model(where, line, model, again)


@contextlib.contextmanager
def _reading(path: Path, again: str) -> Iterator[None]:
    """Raise ResultsError where a file of text cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; {again}") from None
    except UnicodeDecodeError as error:
        raise unusable(path, f"not UTF-8 text (byte {error.start})", again) from None
    except OSError as error:
        raise unreadable(path, error, again) from None


def unreadable(path: Path, error: OSError, again: str) -> ResultsError:
    """Return the error of a file that may not be read."""
    why = f"cannot be read ({error.strerror}); give yourself access to it, or remove it"
    return ResultsError(f"{path}: {why} and {again}")


def parse_model(
    path: Path, text: str | bytes, model: type[AnyFileModel], again: str
) -> AnyFileModel:
    """Return a record from a file's text.

    Args:
        again: How such a file is made, for messages.

    Raises:
        ResultsError: It is not such a record; names file, key and value.
    """
    content = parse_json(path, text, again)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise unusable(path, _mistake(error, content), again) from None


def parse_json(path: Path, text: str | bytes, again: str) -> dict[str, Any]:
    """Return a JSON object, in which no key occurs twice; raise ResultsError."""
    try:
        content = load_json(text, finite=True)
    except ValueError as error:
        raise unusable(path, f"not JSON ({error})", again) from None
    if not isinstance(content, dict):
        raise unusable(path, "not a JSON object", again)
    return content


def _mistake(error: ValidationError, content: Any) -> str:
    """Return the first mistake of a record in words, and how many more there are."""
    mistakes = error.errors(include_url=False)
    first, more = mistakes[0], len(mistakes) - 1
    keys, value = [], content
    for part in first["loc"]:  # it includes names of a union's members, which no file has
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            continue
        keys.append(str(part))
    if first["type"] == "missing":
        keys.append(str(first["loc"][-1]))
        text = f"{'.'.join(keys)} is missing"
    else:
        what = first["msg"].removeprefix("Value error, ").replace("Input should", "it should")
        shown = repr(value)
        shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"
        text = f"{'.'.join(keys)} is {shown}: {what}" if keys else what
    return f"{text} (and {more} more mistake{'s' if more > 1 else ''})" if more else text


def write_model(path: Path, model: type[FileModel], content: dict[str, Any]) -> None:
    """Write a file after checking that its model knows and accepts all its keys.

    Otherwise pydantic's ValidationError states what is wrong.
    """
    model.model_validate_json(json.dumps(content, allow_nan=False), extra="forbid")
    write_json(path, content)
    (READ_FILES.get() or {}).pop((path, model), None)

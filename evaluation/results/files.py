"""Read JSON files of results as typed records; an error states in one sentence what is wrong with a file."""

import contextlib
import json
from collections.abc import Iterator
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


class FileModel(BaseModel):
    """The base of all files: known keys are checked, unknown ones, such as a later version's, are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


AnyFileModel = TypeVar("AnyFileModel", bound=FileModel)


def unusable(path: Path, what: str, again: str = COLLECT_AGAIN) -> ResultsError:
    """Return the error of a file that has to be made again."""
    return ResultsError(f"{path}: {what}; remove it and {again}")


class StageFile(FileModel):
    """A file of a stage, or of a comparison of runs, which a report makes again."""

    VERSION: ClassVar[tuple[str, str] | None] = None
    """What wrote it, and the only version of its protocol that is read; None for any."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file; raise ResultsError if it is missing, invalid, or of another version."""
        content = read_object(path, RUN_AGAIN)
        what, expected = cls.VERSION or ("", content.get("protocol"))
        if content.get("protocol") != expected:
            found = content.get("protocol")
            raise unusable(
                path, f"written by {what} protocol {found!r}, not {expected!r}", RUN_AGAIN
            )
        return as_model(path, content, cls, RUN_AGAIN)


def read_object(path: Path, again: str) -> dict[str, Any]:
    """Read a file of one JSON object; raise ResultsError, which says how such a file is made again."""
    with reading(path, again):
        return parse_json(path, path.read_bytes(), again)


@contextlib.contextmanager
def reading(path: Path, again: str) -> Iterator[None]:
    """Raise ResultsError where a file cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; {again}") from None
    except OSError as error:
        why = f"cannot be read ({error.strerror}); give yourself access to it, or remove it"
        raise ResultsError(f"{path}: {why} and {again}") from None


def parse_json(path: Path, text: str | bytes, again: str) -> dict[str, Any]:
    """Return a JSON object, in which no key occurs twice; raise ResultsError."""
    try:
        content = load_json(text, finite=True)
    except ValueError as error:
        raise unusable(path, f"not JSON ({error})", again) from None
    if not isinstance(content, dict):
        raise unusable(path, "not a JSON object", again)
    return content


def parse_model(
    path: Path, text: str | bytes, model: type[AnyFileModel], again: str
) -> AnyFileModel:
    """Return a record from a file's text; raise ResultsError, which names file, key and value."""
    return as_model(path, parse_json(path, text, again), model, again)


def as_model(
    path: Path, content: dict[str, Any], model: type[AnyFileModel], again: str
) -> AnyFileModel:
    """Return the record of a JSON object; raise ResultsError, which names file and key."""
    try:
        return model.model_validate_json(json.dumps(content))
    except ValidationError as error:
        first, *more = error.errors(include_url=False)
        where = ".".join(map(str, first["loc"])) or "it"
        others = f" (and {len(more)} more mistakes)" if more else ""
        what = f" is {first['input']!r:.60}: {first['msg'].replace('Input', 'it')}"
        if first["type"] == "value_error":
            what = f": {first['msg'].removeprefix('Value error, ')}"
        what = " is missing" if first["type"] == "missing" else what
        raise unusable(path, f"{where}{what}{others}", again) from None


def write_model(path: Path, model: type[FileModel], content: dict[str, Any]) -> None:
    """Write a file after checking that its model knows and accepts all its keys."""
    model.model_validate_json(json.dumps(content, allow_nan=False), extra="forbid")
    write_json(path, content)

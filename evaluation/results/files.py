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
    """Read a file of one JSON object, in which no key occurs twice; raise ResultsError."""
    try:
        with reading(path, again):
            content = load_json(path.read_bytes(), finite=True)
    except ValueError as error:
        raise unusable(path, f"not JSON ({error})", again) from None
    if not isinstance(content, dict):
        raise unusable(path, "not a JSON object", again)
    return content


@contextlib.contextmanager
def reading(path: Path, again: str) -> Iterator[None]:
    """Raise ResultsError where a file cannot be read, which says how such a file is made again."""
    try:
        yield
    except FileNotFoundError:
        raise ResultsError(f"{path}: no such file; {again}") from None
    except OSError as error:
        why = f"cannot be read ({error.strerror}); give yourself access to it, or remove it"
        raise ResultsError(f"{path}: {why} and {again}") from None


def as_model(path: Path, content: object, model: type[AnyFileModel], again: str) -> AnyFileModel:
    """Return the record of JSON; raise ResultsError, which names file and key."""
    try:
        return model.model_validate_json(json.dumps(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        what = f" is {first['input']!r:.60}: {first['msg'].replace('Input', 'it')}"
        what = " is missing" if first["type"] == "missing" else what
        raise unusable(path, f"{where}{what}", again) from None


def write_model(path: Path, model: type[AnyFileModel], content: dict[str, Any]) -> AnyFileModel:
    """Write a file after checking that its model knows and accepts all its keys; return its record."""
    record = model.model_validate_json(json.dumps(content, allow_nan=False), extra="forbid")
    write_json(path, content)
    return record

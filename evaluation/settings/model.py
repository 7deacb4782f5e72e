"""The base class of all settings: they are frozen, unknown keys are errors, and nothing is guessed.

Types are strict: `true` is not read as 1, nor `"5"` as 5. An error has a line for each key at fault.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from evaluation.errors import ConfigError, did_you_mean
from evaluation.settings.withdrawn import instead

Entry = TypeVar("Entry")

_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")


def expand_path(text: str) -> str:
    """Replace `$NAME`, `${NAME}` and a leading `~`; raise ValueError for an address or an unset variable."""
    for variable in _VARIABLE.findall(text):
        if not os.environ.get(name := variable.strip("${}")):
            raise ValueError(
                f"uses {variable}, which is not set: run `export {name}=…` or write the path out"
            )
    path = os.path.expandvars(os.path.expanduser(text))
    if "://" in path:
        raise ValueError(f"{path!r} is an address; a path on this machine is expected")
    return str(PurePosixPath(path))


def _find_path(path: str, info: ValidationInfo) -> str:
    """Resolve a path next to the configuration file if it exists there, else in the working folder."""
    for folder in (info.context or {}).get("folders", ()):
        joined = os.path.normpath(os.path.join(folder, path))
        if not os.path.isabs(path) and os.path.exists(joined):
            return joined
    return _from_working_folder(path, info)


def _from_working_folder(path: str, info: ValidationInfo) -> str:
    """Resolve a path in the working folder of a run whose configuration is read from another folder."""
    return os.path.join((info.context or {}).get("working_folder", ""), path)


def _find_folder(name: str, info: ValidationInfo) -> str:
    """Resolve a folder like `_find_path`; what is neither there nor written as a path stays a name."""
    if name.startswith("~") or _VARIABLE.search(name):
        name = expand_path(name)
    path = _find_path(name, info)
    return path if name.startswith(".") or os.path.exists(path) else name


def distinct(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    for entry, times in Counter(entries).most_common(1):
        if times > 1:
            raise ValueError(f"{entry} appears twice; leave one out")
    return entries


_PathText = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")]
ExpandedPath = Annotated[_PathText, AfterValidator(expand_path), AfterValidator(_find_path)]
"""A path in which environment variables are expanded when it is read; `_find_path` resolves it."""
OutputPath = Annotated[
    _PathText,
    AfterValidator(expand_path),
    AfterValidator(_from_working_folder),
    Field(pattern="^[^-{}][^{}]*$"),
]
"""A folder that the workflow's rules write to, relative to the working folder.

Snakemake gives braces and a leading dash a meaning of their own."""
Integer = Annotated[int, Field(strict=True)]
"""A whole number, not text. Each key sets its bounds; any set here would override them."""
Fraction = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Boolean = Annotated[bool, Field(strict=True)]
Step = Annotated[Integer, Field(ge=0, lt=2**63)]
Seed = Annotated[Integer, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(min_length=1)]
FolderOrId = Annotated[Text, AfterValidator(_find_folder)]

Count = Annotated[Integer, Field(gt=0, le=10**12)]
LARGEST_WINDOW = 2**24
Tokens = Annotated[Integer, Field(gt=0, le=LARGEST_WINDOW)]
SequenceLength = Annotated[Integer, Field(gt=1, le=LARGEST_WINDOW)]


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


def config_error(error: ValidationError, file: str, root: type[BaseModel]) -> ConfigError:
    """Return pydantic's report on a `root` with a line for each key at fault: file, key, what is wrong."""
    mistakes = error.errors(include_url=False)
    words: dict[str, list[str]] = {}
    for mistake in mistakes:
        place = mistake["loc"]
        if mistake["type"] == "too_short" and any(
            other["loc"][: len(place)] == place for other in mistakes if other is not mistake
        ):
            continue  # pydantic counts the entries without the wrong ones, which it reports, too
        words.setdefault(_key(place), []).append(_words(mistake, root))
    lines = (": ".join(filter(None, (file, key, " or ".join(words[key])))) for key in words)
    return ConfigError("\n".join(lines))


def _key(place: tuple[int | str, ...]) -> str:
    """Return a place as keys and indices, without pydantic's names of types, which end in brackets."""
    parts = [str(part) for part in place if part != "constrained-str"]
    return ".".join(p if p.isprintable() else repr(p) for p in parts if not p.endswith("]"))


def _words(mistake: Any, root: type[BaseModel]) -> str:
    """Return pydantic's words and the key or value that was meant, or what replaces an earlier version's."""
    message = str(mistake["msg"]).removeprefix("Value error, ")
    place, context = mistake["loc"], mistake.get("ctx", {})
    expected = context.get("expected_tags") or context.get("expected")
    if mistake["type"] == "extra_forbidden":
        word = str(place[-1])
        return instead("key", word) or message + did_you_mean(word, _keys_at(root, place[:-1]))
    if isinstance(expected, str):
        word = str(context.get("tag", mistake["input"]))
        known = re.findall("'([^']+)'", expected)
        withdrawn = instead("value", word)
        return f"{word} {withdrawn}" if withdrawn else message + did_you_mean(word, known)
    return message


def _keys_at(root: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """Return the keys that are allowed at a place, whose parts are keys of models, or kinds of one."""
    models = [root]
    for part in place:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        models = [inner for field in fields for inner in models_in(field.annotation)] or models
    keys = {field.alias or name for model in models for name, field in model.model_fields.items()}
    return sorted(keys)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the settings models inside an annotation such as `dict[str, Stage] | None`, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)

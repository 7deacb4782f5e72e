"""The base class of all settings: they are frozen, unknown keys are errors, and nothing is guessed.

Types are strict: `true` is not read as 1, nor `"5"` as 5. An error has one line for each mistake.
"""

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from evaluation.errors import ConfigError
from evaluation.withdrawn import instead

_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_WRITTEN_WRONG = {
    "string_type": "is not text; put it in quotes",
    "invalid_key": "is not text; put it in quotes",
    "int_type": "is not a whole number",
    "float_type": "is not a number",
    "tuple_type": "is not a list; write it as `[a, b]`",
    "dict_type": "has no keys; write `name: value` lines below it",
    "bool_parsing": "is neither true nor false",
    "bool_type": "is neither true nor false",
}


def expand_path(text: str) -> str:
    """Replace `$NAME`, `${NAME}` and a leading `~`.

    Raises ValueError for a variable without a value, and for text that is not a path on this machine.
    """
    for variable in _VARIABLE.findall(text):
        if not os.environ.get(name := variable.strip("${}")):
            raise ValueError(
                f"uses {variable}, which is not set: run `export {name}=…` or write the path out"
            )
    path = os.path.expandvars(os.path.expanduser(text))
    if not path.strip() or not path.isprintable():
        raise ValueError(f"{path!r} is empty, or cannot be printed; choose another path")
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


def _expand_folder(name: str) -> str:
    """Expand a name like a path if it can be no name on the hub; raise like `expand_path`."""
    return expand_path(name) if name.startswith("~") or _VARIABLE.search(name) else name


def _find_folder(name: str, info: ValidationInfo) -> str:
    """Resolve a folder like `_find_path`; what is neither there nor written as a path stays a name."""
    path = _find_path(name, info)
    return path if name.startswith(".") or os.path.exists(path) else name


def _for_rules(path: str) -> str:
    if re.search(r"[{}]", path) or path.startswith("-"):
        raise ValueError(
            f"{path!r}: Snakemake gives braces and a leading dash a meaning of their own; choose "
            "another path"
        )
    return path


ExpandedPath = Annotated[str, AfterValidator(expand_path), AfterValidator(_find_path)]
"""A path in which environment variables are expanded when it is read; `_find_path` resolves it."""
OutputPath = Annotated[
    str,
    AfterValidator(expand_path),
    AfterValidator(_from_working_folder),
    AfterValidator(_for_rules),
]
"""A folder that the workflow's rules write to, relative to the working folder."""
Integer = Annotated[int, Field(strict=True)]
"""A whole number, not text. Each key sets its bounds; any set here would override them."""
Fraction = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite number, not text. Each key sets its bounds, too."""
Boolean = Annotated[bool, Field(strict=True)]
"""`true` or `false`, not text."""
Step = Annotated[Integer, Field(ge=0, lt=2**63)]
"""The number of a checkpoint."""
Seed = Annotated[Integer, Field(ge=0, lt=2**63)]
Text = Annotated[str, Field(min_length=1)]
"""Text that is not empty."""
FolderOrId = Annotated[Text, AfterValidator(_expand_folder), AfterValidator(_find_folder)]
"""A name on the hub, or a folder."""

LARGEST_COUNT = 10**12
"""Most tokens, documents or questions that a key can request."""
Count = Annotated[Integer, Field(gt=0, le=LARGEST_COUNT)]
LARGEST_WINDOW = 2**24
"""Most tokens of a sequence."""
Tokens = Annotated[Integer, Field(gt=0, le=LARGEST_WINDOW)]
SequenceLength = Annotated[Integer, Field(gt=1, le=LARGEST_WINDOW)]
LARGEST_MEMORY = 2**24
"""In megabytes."""
LONGEST_WAIT = 86_400
"""Most seconds that verifying one answer may take."""


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the settings models inside an annotation such as `dict[str, Stage] | None`, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def one_sentence(error: ValidationError, file: str, root: type[BaseModel]) -> ConfigError:
    """Turn pydantic's report into a line per mistake, which names file, key and remedy.

    Args:
        file: Where the settings come from, for messages.
        root: The model that was validated; hints on unknown keys come from it.
    """
    lines, mistakes = [], error.errors(include_url=False)
    for mistake in mistakes:
        if mistake["type"] == "too_short" and _has_inner(mistake, mistakes):
            continue  # pydantic counts the entries without the wrong ones, which it reports, too
        parts = filter(_is_written, map(str, mistake["loc"]))
        key = ".".join(part if part.isprintable() else repr(part) for part in parts)
        lines.append(": ".join(filter(None, (file, key, _what(mistake, root)))))
    return ConfigError("\n".join(lines))


def _is_written(part: str) -> bool:
    """Return whether a part of a location is a key or index in the file, not pydantic's name of a type."""
    return part != "constrained-str" and not (part.endswith("]") and "[" in part)


def _has_inner(mistake: Any, mistakes: Sequence[Any]) -> bool:
    place = mistake["loc"]
    return any(other is not mistake and other["loc"][: len(place)] == place for other in mistakes)


def _what(mistake: Any, root: type[BaseModel]) -> str:
    kind, value = mistake["type"], mistake.get("input")
    if kind == "extra_forbidden":
        withdrawn = instead("key", str(mistake["loc"][-1]))
        return withdrawn or unknown_key(
            str(mistake["loc"][-1]), _keys_at(root, mistake["loc"][:-1])
        )
    if kind.startswith("union_tag"):
        return _wrong_kind(mistake)
    if kind == "model_type":
        keys = _keys_at(root, mistake["loc"])
        return f"{_shortened(value)} stands where keys belong; there are {', '.join(keys)}"
    if kind == "literal_error":
        return _unknown_value(value, re.findall("'([^']+)'", mistake["ctx"]["expected"]))
    if kind == "too_short":
        lengths = mistake["ctx"]
        return (
            f"has {lengths['actual_length']} of the {lengths['min_length']} entries that it needs"
        )
    if kind in _WRITTEN_WRONG:
        return f"{_shortened(value)} {_WRITTEN_WRONG[kind]}"
    return str(mistake["msg"]).removeprefix("Value error, ")


def _wrong_kind(mistake: Any) -> str:
    """Return the sentence for a mapping in which one key decides which other keys it has."""
    key = mistake["ctx"]["discriminator"].strip("'")
    if mistake["type"] == "union_tag_not_found":
        return f"needs the key `{key}`"
    kinds = mistake["ctx"]["expected_tags"].replace("'", "").split(", ")
    return f"{key}: {_unknown_value(mistake['ctx']['tag'], kinds)}"


def _unknown_value(value: Any, known: list[str]) -> str:
    withdrawn = instead("value", str(value))
    return f"{_shortened(value)} {withdrawn or f'is unknown; {_hint(str(value), known)}'}"


def unknown_key(key: str, known: list[str]) -> str:
    """Return the rest of a sentence, such as "unknown key; did you mean `steps`?"."""
    return f"unknown key; {_hint(key, known)}" if known else "unknown key; remove it"


def _hint(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _keys_at(root: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """Return the keys that are allowed at a location, whose parts are followed as keys of models."""
    models = [root]
    for part in place:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        models = [inner for field in fields for inner in models_in(field.annotation)] or models
        models = [model for model in models if _tag(model) == part] or models
    return sorted({key for model in models for key in model.model_fields})


def tag_key(model: type[BaseModel]) -> str:
    """Return the key whose value distinguishes a union's models: `check` for checks, else `kind`."""
    return "check" if "check" in model.model_fields else "kind"


def _tag(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get(tag_key(model))
    return next(iter(get_args(field.annotation)), None) if field else None

"""The base of all settings: frozen, and unknown keys are errors."""

import os
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from evaluation.errors import ConfigError

_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")


def expand_path(text: str) -> str:
    """Replaces `$NAME`, `${NAME}` and a leading `~`; raises ValueError for an unset variable."""
    path = os.path.expandvars(os.path.expanduser(text))
    left = _VARIABLE.search(path)
    if left:
        name = left.group().strip("${}")
        raise ValueError(
            f"{text!r} uses {left.group()}, which is not set: run `export {name}=…` or write the path out"
        )
    return path


ExpandedPath = Annotated[str, AfterValidator(expand_path)]
"""A path in which environment variables are expanded when it is read."""


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def one_sentence(error: ValidationError, file: str) -> ConfigError:
    """Turns pydantic's report into one line per mistake, each naming file, key and mend."""
    lines = []
    for mistake in error.errors(include_url=False):
        key = ".".join(str(part) for part in mistake["loc"]) or "(top level)"
        what = mistake["msg"].removeprefix("Value error, ")
        if mistake["type"] == "extra_forbidden":
            what = "unknown key; remove it or check its spelling"
        lines.append(f"{file}: {key}: {what}")
    return ConfigError("\n".join(lines))

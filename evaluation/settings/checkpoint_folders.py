"""Where a stage's checkpoints are: one folder for each step, or a list of folders from anywhere.

<checkpoints>/1000   …/step10   …/step_10   …/run_step20   …/iter_0000010   …/checkpoint-500
"""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
)

from evaluation.settings.model import ExpandedPath, Settings, Step, Text, distinct
from evaluation.settings.steps import step_named, step_of_folder

_FROM_FOLDER: Any = None


class ListedCheckpoint(Settings):
    """A checkpoint of a list, which can be in any folder."""

    path: ExpandedPath = Field(description="The checkpoint's folder.")
    step: Step = Field(
        _FROM_FOLDER,
        validate_default=True,
        description="Its step; else that of its folder's name.",
    )
    name: Text | None = Field(None, description="What results call it next to its step.")

    @field_validator("step", mode="before")
    @classmethod
    def _of_folder(cls, step: Any, info: ValidationInfo) -> Any:
        folder = Path(info.data.get("path", "0"))  # a path that is wrong is reported by itself
        if step is None and (step := step_of_folder(folder.name)) is None:
            raise ValueError(
                f"the name {folder.name!r} has no step; add `step:`, such as 1, 2, 3 for checkpoints of no "
                "particular order"
            )
        return step


def _of_distinct_steps(listed: tuple[ListedCheckpoint, ...]) -> tuple[ListedCheckpoint, ...]:
    distinct(tuple(f"step {checkpoint.step}" for checkpoint in listed))
    return listed


_Entry = Annotated[
    ListedCheckpoint,
    BeforeValidator(
        lambda written: {"path": written} if isinstance(written, str) else written,
        json_schema_input_type=ListedCheckpoint | str,
    ),
]
_Listed = Annotated[tuple[_Entry, ...], Field(min_length=1), AfterValidator(_of_distinct_steps)]
Checkpoints = Annotated[
    Annotated[ExpandedPath, Tag("[folder]")] | Annotated[_Listed, Tag("[list]")],
    Discriminator(lambda given: "[list]" if isinstance(given, list | tuple) else "[folder]"),
]
"""A folder of steps, or checkpoints from anywhere; a text in the list is a path."""


def named_steps(home: Path) -> Iterator[tuple[int, str]]:
    """Yield step and name of each folder that can be a checkpoint's; raise OSError if it cannot be read."""
    for name in sorted(path.name for path in os.scandir(home) if path.is_dir()):
        if (step := step_of_folder(name)) is not None:
            yield step, name


def step_folder(home: Path, step: int) -> Path:
    """Return the folder of a step, which need not exist: then it has the step's plain number."""
    plain = home / str(step)
    try:
        if plain.is_dir():
            return plain
        return home / _names(home, home.stat().st_mtime_ns).get(step, plain.name)
    except OSError:  # reported where the folder is needed
        return plain


@lru_cache(maxsize=64)
def _names(home: Path, changed: int) -> dict[int, str]:
    """Return the folder of each step, a plain number before others, as of the folder's last change."""
    del changed
    names: dict[int, str] = {}
    for step, name in named_steps(home):
        if step not in names or step_named(name) is not None:
            names[step] = name
    return names

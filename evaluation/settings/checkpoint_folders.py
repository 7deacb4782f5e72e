"""Where a stage's checkpoints are: one folder for each step, or a list of folders from anywhere.

    <checkpoints>/1000   …/step10   …/step_10   …/run_step20   …/iter_0000010   …/checkpoint-500   …/final

The step of `final` is the one that its metadata has; it is left out where another folder is that step.
"""

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, WithJsonSchema

from evaluation.errors import ConfigError
from evaluation.settings.model import ExpandedPath, Settings, Step, Text, expand_path
from evaluation.settings.steps import step_named, step_of_folder
from evaluation.settings.yaml_files import read_yaml_value

FINAL = ("final", "last")
"""Names of folders without a step's number."""

_METADATA = "checkpoint_metadata.json"
_STATES = (("metas", "last_train_step"), ("global_step",))
"""Where Nanotron's metadata and the trainer of transformers keep the step."""

_LISTS = (".yaml", ".yml", ".json")


CheckpointsPath = Annotated[
    ExpandedPath,
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "object"}]}),
]
"""A folder; `read_checkpoints` reads lists before it is validated."""


class ListedCheckpoint(Settings):
    """A checkpoint of a list, which can be in any folder."""

    path: ExpandedPath = Field(description="The checkpoint's folder.")
    step: Step = Field(description="Its step; that of its folder's name or metadata if not given.")
    name: Text | None = Field(None, description="What results call it next to its step.")


def read_checkpoints(
    given: object, info: ValidationInfo
) -> tuple[str, list[dict[str, Any]]] | None:
    """Read a list of checkpoints, or a file that holds one.

    Args:
        given: The value of `checkpoints`, as it is written.
        info: Its context names folders in which relative paths are looked for.

    Returns:
        The innermost folder that holds all of them, and path, step and name of each; None where a
        folder is given instead.

    Raises:
        ValueError: An entry cannot be read, or two have one step.
    """
    folders = list((info.context or {}).get("folders", ()))
    if isinstance(given, str) and given.endswith(_LISTS) and (file := _file(given, folders)):
        given, folders = _content(file), [str(file.parent), *folders]
    if not isinstance(given, list | Mapping):
        return None
    entries = [_entry(one, number, folders) for number, one in enumerate(_written(given))]
    if not entries:
        raise ValueError(
            "`checkpoints` lists no checkpoint; write `[{path: …, step: …}]`, or a folder of steps"
        )
    steps = [entry["step"] for entry in entries]
    for entry in entries:
        if steps.count(entry["step"]) > 1:
            raise ValueError(
                f"step {entry['step']} appears twice; give each checkpoint a `step` of its own"
            )
    parents = {os.path.dirname(os.path.abspath(entry["path"])) for entry in entries}
    return os.path.commonpath(parents), entries


def _content(file: Path) -> Any:
    try:
        return read_yaml_value(file)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _file(given: str, folders: list[str]) -> Path | None:
    path = os.path.expandvars(os.path.expanduser(given))
    places = (Path(folder, path) for folder in (*folders, "."))
    return next((place for place in places if place.is_file()), None)


def _written(given: list[Any] | Mapping[Any, Any]) -> list[Any]:
    """Return entries of a list, or of a mapping from names to paths."""
    if isinstance(given, list):
        return given
    if isinstance(inner := given.get("checkpoints"), list | Mapping):
        return _written(inner)
    return [{"name": str(name), "path": path} for name, path in given.items()]


def _entry(written: Any, number: int, folders: list[str]) -> dict[str, Any]:
    entry = {"path": written} if isinstance(written, str) else written
    keys = ("path", "step", "name")
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str) or {*entry} - {*keys}:
        raise ValueError(
            f"entry {number} of `checkpoints` is {str(written)[:80]!r}; write `{{path: …, step: …, name: "
            f"…}}`, of which "
            "only `path` is needed"
        )
    path = expand_path(entry["path"])
    path = next((p for f in folders if os.path.isdir(p := os.path.join(f, path))), path)
    step = entry.get("step")
    if step is None:
        step = step_of_folder(Path(path).name)
    if step is None and (step := _step_in_metadata(Path(path))) is None:
        raise ValueError(
            f"entry {number} of `checkpoints`: neither the name {Path(path).name!r} nor the metadata in "
            f"{path} "
            "has a step; add `step:`, such as 1, 2, 3 for checkpoints of no particular order"
        )
    return {"path": path, "step": step, "name": entry.get("name")}


def _step_in_metadata(folder: Path) -> int | None:
    for name, keys in zip((_METADATA, "trainer_state.json"), _STATES, strict=True):
        if not (folder / name).is_file():
            continue
        try:
            step: Any = json.loads((folder / name).read_text(encoding="utf-8"))
        except ValueError:
            continue  # the checkpoint's reader names the damage
        for key in keys:
            step = step.get(key) if isinstance(step, dict) else None
        if type(step) is int and step >= 0:
            return step
    return None


def named_steps(home: Path) -> Iterator[tuple[int, str]]:
    """Yield step and name of each folder that can be a checkpoint's, `final` only if it is another.

    Raises:
        OSError: It cannot be read.
    """
    names = sorted(path.name for path in os.scandir(home) if path.is_dir())
    steps = {name: step for name in names if (step := step_of_folder(name)) is not None}
    yield from ((step, name) for name, step in steps.items())
    for name in FINAL:
        step = _step_in_metadata(home / name) if name in names else None
        if step is not None and step not in steps.values():
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

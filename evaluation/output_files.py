"""Where a command writes the file that its user names: never over what it reads, nor over results."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from evaluation.errors import OutputError
from evaluation.files import link_target
from evaluation.input_files import STANDARD
from evaluation.records import FOLDER, read_record


def output_file(path: Path, inputs: Iterable[Path] = ()) -> Path:
    """Return the path to write for an output that the user named.

    Args:
        path: Path that the user wrote; links are followed.

    Raises:
        OutputError: When it is an input, a file in a checkpoint that is read, a result of the workflow,
            or no place for a file.
        OSError: When the path cannot be followed.
    """
    check_replaces_nothing(path, inputs)
    return link_target(path)


def check_replaces_nothing(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise OutputError if writing a file would replace an input or a result; see `output_file`."""
    if path.exists() and any(_is_same(source, path) for source in inputs):
        raise _refused(path, "is read by the same command")
    if not path.is_file():
        return
    target = Path(os.path.realpath(path))
    for folder in target.parents:
        if str(target.relative_to(folder)) in _recorded(folder):
            raise _refused(path, f"is a result of the workflow, recorded in {folder / FOLDER}")
        if folder.name == "scores" and (folder.parent / FOLDER).is_dir():
            raise _refused(path, "belongs to the score store of the workflow")


def _is_same(source: Path, path: Path) -> bool:
    """Return whether a path is the file or pipe that is read; a terminal may be read and written."""
    if source == STANDARD:
        try:
            state = os.fstat(sys.stdin.fileno())
        except (AttributeError, OSError, ValueError):  # no standard input, or one in memory
            return False
    elif source.exists():
        state = source.stat()
    else:
        return False
    return not stat.S_ISCHR(state.st_mode) and os.path.samestat(state, path.stat())


def _recorded(folder: Path) -> Iterator[str]:
    """Yield the files that records in a folder name, relative to it."""
    for record in (folder / FOLDER).glob("*.json"):
        step = read_record(folder, record.stem)
        yield from step.files if step is not None else ()


def _refused(path: Path, why: str) -> OutputError:
    return OutputError(f"{path}: {why}, and would be replaced; give --output another path")

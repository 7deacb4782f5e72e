"""A tier that `edits.yaml` and the files of `new/` add to a copy of the package is found in every output."""

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.histories.warm import run_python, well
from tests.tables import table

MOST = 15
EDITS = table("toy_tier/edits")
NEW = Path(__file__).parent / "new"


def test_edits_are_few() -> None:
    assert len(EDITS) <= MOST


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one tier more."""
    root = tmp_path_factory.mktemp("toy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "evaluation", root / "evaluation", ignore=ignored)
    shutil.copytree(ROOT / "workflow", root / "workflow", ignore=ignored)
    shutil.copytree(ROOT / "locks", root / "locks")
    shutil.copy(ROOT / "pyproject.toml", root)  # doctor reads both
    for edit in EDITS:
        path, before = root / "evaluation" / edit["file"], edit["before"]
        whole = path.read_text(encoding="utf-8")
        assert whole.count(before) == 1, edit
        path.write_text(whole.replace(before, edit["text"] + before), encoding="utf-8")
    for path in NEW.glob("*.py"):
        shutil.copy(path, root / "evaluation" / path.stem / "toy.py")
    return root


def run(package: Path, room: str, folder: Path) -> None:
    """Runs a room's proof on the copy; what fails is in its output."""
    path = os.pathsep.join([str(package), str(ROOT)])
    words = ["-W", "error", "-m", "tests.toy_tier.rooms", room, str(folder)]
    well(run_python(words, folder, cold=True, PYTHONPATH=path, PYTHONSAFEPATH="1"))


@pytest.mark.parametrize("room", ["bridge", "reporting", "doctor", "missing_reader", "workflow"])
def test_a_room_knows_the_tier(package: Path, tmp_path: Path, room: str) -> None:
    run(package, room, tmp_path)

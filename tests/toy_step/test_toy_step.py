"""A new step is an entry of the table and a function: rules, status and commands know it, the watcher too."""

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dependencies.evaluated import write_evaluated
from tests.histories.warm import run_python, well
from tests.tables import table


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has one step more."""
    root = tmp_path_factory.mktemp("toy")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("evaluation", "workflow", "locks"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", root)
    steps = root / "evaluation/dependencies/steps.py"
    text = steps.read_text(encoding="utf-8")
    for edit in table("toy_step/edits"):
        assert text.count(edit["old"]) == 1, edit
        text = text.replace(edit["old"], edit["new"])
    steps.write_text(text, encoding="utf-8")
    shutil.copy(Path(__file__).parent / "judging.py", root / "evaluation")
    return root


def test_everything_knows_the_step(package: Path, tmp_path: Path) -> None:
    config = write_evaluated(tmp_path)
    path = os.pathsep.join([str(package), str(ROOT)])
    words = ["-m", "tests.toy_step.proofs", str(config)]
    well(run_python(words, tmp_path, cold=True, PYTHONPATH=path, PYTHONSAFEPATH="1"))

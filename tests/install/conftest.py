"""The ways by which users get at the workflow, each from an empty folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.histories.warm import well

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / ".test"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel, as `pip install` leaves it, on top of this environment."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--disable-pip-version-check", "--target", str(folder / "site")]
    well(subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False))
    (wheel,) = (folder / "dist").iterdir()
    well(subprocess.run([*install, str(wheel)], capture_output=True, text=True, check=False))
    return folder / "site"


@pytest.fixture
def run(tmp_path: Path, site: Path) -> Run:
    """A command in the empty folder, or one below it, with the installed package or none at all."""

    def command(
        *words: str, folder: str = ".", is_installed: bool = True
    ) -> subprocess.CompletedProcess[str]:
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "EVAL"))}
        path = f"{site / 'bin'}:{Path(sys.executable).parent}:{variables['PATH']}"
        variables |= {"PATH": path, **({"PYTHONPATH": str(site)} if is_installed else {})}
        return subprocess.run(
            words, cwd=tmp_path / folder, env=variables, capture_output=True, text=True, check=False
        )

    return command


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A copy of the tiny run: configuration, checkpoints, text and questions."""
    for name in ("config", "resources"):
        shutil.copytree(TINY / name, tmp_path / name)
    return tmp_path

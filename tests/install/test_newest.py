"""The newest Snakemake and Slurm executor of the registry, where the lock has others.

If these tests pass, the bounds in pyproject.toml and the lock may be raised.
"""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.histories.warm import well
from tests.install.conftest import ROOT
from tests.install.test_runs import scored
from tests.orchestration.test_internals import PACKAGES

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def newest(package: str) -> str:
    """The newest version of a registry; skipped where none answers."""
    asked = [*PIP, "index", "versions", package]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no registry answers: {done.stderr.strip()[-200:]}")
    listed = re.match(rf"{package} \(([\w.]+)\)", done.stdout)
    assert listed, done.stdout
    return listed[1]


def run(words: list[str], folder: Path, variables: dict[str, str]) -> None:
    """A command that has to end well."""
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    well(done)


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which Python has the newest versions, in a folder before its own."""
    versions = {name: newest(name) for name in PACKAGES}
    others = [f"{name}=={new}" for name, new in versions.items() if new != version(name)]
    if not others:
        pytest.skip(f"the lock has the newest: {versions}")
    folder = tmp_path_factory.mktemp("newest")
    run([*PIP, "install", "--quiet", "--target", str(folder), *others], folder, dict(os.environ))
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "PATH": path}


@pytest.mark.long
def test_it_has_all_parts_that_are_used(newer: dict[str, str]) -> None:
    tests = ["tests/orchestration", "-k", "not tested_versions and not part_of_the_executor"]
    run([sys.executable, "-m", "pytest", "-x", "-q", *tests], ROOT, newer)


@pytest.mark.long
def test_it_runs_a_stage(newer: dict[str, str], tiny: Path) -> None:
    words = ["stage1", "--cores", "2", "--configfile", "config/config.yaml"]
    run(
        [sys.executable, "-m", "snakemake", "-s", f"{ROOT}/workflow/Snakefile", *words], tiny, newer
    )
    assert scored(tiny)

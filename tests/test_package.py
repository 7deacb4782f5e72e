"""What is installed: every file that is no module is named in pyproject.toml, and each package is in one lock file."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from evaluation.settings.provided import VERSIONS
from tests.conftest import ROOT


def test_files_beside_the_modules_are_part_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    data: dict[str, list[str]] = project["tool"]["setuptools"]["package-data"]
    found = [
        path.relative_to(ROOT)
        for path in (ROOT / "evaluation").rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    ]
    assert Path("evaluation/reporting/pages/templates/stage.html") in found
    left_out = [path for path in found if not any(_holds(path, *entry) for entry in data.items())]
    assert left_out == []


def _holds(path: Path, package: str, patterns: list[str]) -> bool:
    folder = Path(*package.split("."))
    return path.is_relative_to(folder) and any(
        fnmatch(str(path.relative_to(folder)), pattern) for pattern in patterns
    )


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pinned(name: str) -> dict[str, str]:
    lines = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / name).read_text(), flags=re.MULTILINE)
    return {normal(package): version for package, version in lines}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def test_each_package_stands_in_one_of_them() -> None:
    runs, tools = pinned("requirements.lock"), pinned("requirements-dev.lock")
    assert len(runs) > 80
    assert len(tools) > 20
    assert not runs.keys() & tools.keys()


def test_what_pyproject_asks_for_is_pinned_within_its_bounds() -> None:
    extras = PROJECT["optional-dependencies"]
    runs, tools = pinned("requirements.lock"), pinned("requirements-dev.lock")
    for wanted, lock in ((PROJECT["dependencies"] + extras["demo"], runs), (extras["dev"], tools)):
        for requirement in map(Requirement, wanted):
            assert requirement.specifier.contains(lock[normal(requirement.name)]), requirement


@pytest.mark.parametrize("provider", VERSIONS)
def test_the_provider_that_is_asked_is_the_one_that_is_installed(provider: str) -> None:
    name = f"requirements-{provider.replace('_', '-')}.lock"
    if provider == "olmo_eval":  # no registry has it
        assert f"olmo-eval {VERSIONS[provider]} itself" in (ROOT / name).read_text()
    else:
        assert pinned(name)[normal(provider)] == VERSIONS[provider]

"""What is installed: each package is in one lock file, and the conda environment has the same."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement

from evaluation.settings.provided import VERSIONS
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pinned(name: str) -> dict[str, str]:
    lines = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / name).read_text(), flags=re.MULTILINE)
    return {normal(package): version for package, version in lines}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


@pytest.mark.parametrize("name", ["dev", "bench"])
def test_each_package_stands_in_one_of_them(name: str) -> None:
    runs, tools = pinned("locks/requirements.lock"), pinned(f"locks/{name}.lock")
    assert len(runs) > 80
    assert len(tools) > 20
    assert not runs.keys() & tools.keys()


def test_the_conda_environment_has_the_same_pins() -> None:
    content = yaml.safe_load((ROOT / "workflow/envs/evaluation.yaml").read_text())
    lines = content["dependencies"][-1]["pip"]
    assert {normal(a): b for a, b in (line.split("==") for line in lines)} == pinned(
        "locks/requirements.lock"
    )


def test_what_pyproject_asks_for_is_pinned_within_its_bounds() -> None:
    extras = PROJECT["optional-dependencies"]
    runs, tools = pinned("locks/requirements.lock"), pinned("locks/dev.lock")
    for wanted, lock in ((PROJECT["dependencies"] + extras["demo"], runs), (extras["dev"], tools)):
        for requirement in map(Requirement, wanted):
            assert requirement.specifier.contains(lock[normal(requirement.name)]), requirement


@pytest.mark.parametrize("provider", VERSIONS)
def test_the_provider_that_is_asked_is_the_one_that_is_installed(provider: str) -> None:
    name = f"locks/{provider.replace('_', '-')}.lock"
    assert pinned(name)[normal(provider)] == VERSIONS[provider]


def test_contributing_says_what_each_dependency_is_for() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| packages | for |")[2]
    named = {normal(name) for name in re.findall(r"[\w-]+", table)}
    needed = {normal(Requirement(text).name) for text in PROJECT["dependencies"]}
    assert needed - named == set()

"""What is installed as a package: every file of it that is no module is named in pyproject.toml."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

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

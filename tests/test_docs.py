"""The documentation: the site is built without a broken link, and the version is the same everywhere."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from evaluation.commands.parser import build_parser, parsers_of
from evaluation.version import __version__
from tests.conftest import ROOT

ENVIRONMENT = ROOT / ".venv-docs/.complete"


@pytest.mark.skipif(not ENVIRONMENT.exists(), reason="no .venv-docs; `make docs` installs it")
def test_site(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "DOCS_PAGES": str(tmp_path / "pages"),
        "DOCS_SITE": str(tmp_path / "site"),
    }
    done = subprocess.run(
        ["make", "docs"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for page in ("index.html", "config/index.html", "docs/results/index.html"):
        text = (tmp_path / "site" / page).read_text()
        assert re.search(r'src="https?:', text) is None  # nothing is fetched from another host
        assert re.search(r"<p>[^<]*\n\s*- ", text) is None  # a list that is none


def test_citation_and_changelog_have_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert f"\n## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


COMMAND = re.compile(r"^\s*(?:\$ )?(?:\w+=\S+ )*(?:python -m evaluation|staged-evaluation) (.*)$")
REFUSED = ("compare A B --by token", "compare: error:")
"""A mistake that a page shows, and what is said to it."""
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def documented_commands() -> list[tuple[str, str]]:
    """Each command of a code block, with its page; lines that end with a backslash go on."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            command = COMMAND.match(line)
            if command is not None and not command[1].startswith(REFUSED):
                found.append((page.name, command[1]))
    return found


def as_typed(command: str) -> list[str]:
    """Its words without the comment, a pipe's other programs and optional parts in brackets."""
    bare = re.sub(r"\[(--[^\]]*)\]", r"\1", command)
    words = shlex.split(bare, comments=True)
    ends = [place for place, word in enumerate(words) if word in ("|", ">", "&&", "&", "2>&1", ";")]
    return words[: min(ends, default=len(words))]


@pytest.mark.parametrize(("page", "command"), documented_commands())
def test_every_documented_command_is_one(page: str, command: str) -> None:
    """Its options, choices and number of arguments are those of the program."""
    words = as_typed(command)
    if "--help" not in words:
        assert callable(build_parser().parse_args(words).run)


def test_every_command_is_documented() -> None:
    """In a code block, or by its name in a sentence."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    lacking = [name for name in parsers_of(build_parser()) if not re.search(rf"\b{name}\b", text)]
    assert lacking == []
    assert len(documented_commands()) > 30

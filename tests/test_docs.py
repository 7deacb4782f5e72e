"""The documentation: the site is built without a broken link, and the version is the same everywhere."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from evaluation import __version__
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

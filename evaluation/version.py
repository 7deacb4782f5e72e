"""The version of this package, the place of its workflow, and the commits of code and configuration.

Imports only the standard library; pyproject.toml reads the version.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

__version__ = "1.0.0"

_PACKAGE = Path(__file__).resolve().parent
IS_INSTALLED = (_PACKAGE / "checkout").is_dir()
ROOT = _PACKAGE / "checkout" if IS_INSTALLED else _PACKAGE.parent
"""Folder with workflow/, task_suites/, config/ and slurm_profile/. In PYTHONPATH it provides only this
package and no other, so that the Python of another environment can import it."""

SNAKEFILE = ROOT / "workflow" / "Snakefile"
CONFIG_VARIABLE = "EVALUATION_CONFIG"
"""Environment variable with the configuration file of a run, for its jobs and for commands."""

DEFAULT_CONFIG = Path("config/config.yaml")

PROFILE = ROOT / "slurm_profile"
SUITES = ROOT / "task_suites"


def commit_of(path: Path) -> str | None:
    """Return the last commit of a path, such as `1a2b3c4d5e6f of 2026-03-01, modified since`, or None."""
    folder = path if path.is_dir() else path.parent
    this = ("--", str(path.resolve()))
    if not folder.is_dir() or not _git(folder, "ls-files", *this):
        return None
    return _last_commit(folder, this, this)


def _last_commit(folder: Path, of: Sequence[str], changed: Sequence[str]) -> str | None:
    known = _git(folder, "log", "-1", "--abbrev=12", "--format=%h of %cs", *of)
    is_modified = known and _git(folder, "status", "--porcelain", *changed)
    return f"{known}, modified since" if is_modified else known or None


def _git(folder: Path, *arguments: str) -> str | None:
    """Return git's output; None if it fails, for example outside of a repository."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

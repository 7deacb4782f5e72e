"""Paths of the workflow's rules, suites, profile and lock file, in a checkout and when installed.

Imports only the standard library. In a checkout these files are next to the package; in a wheel they are
inside the package, as pyproject.toml maps them.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "checkout"

IS_INSTALLED = _INSTALLED.is_dir()

ROOT = _INSTALLED if IS_INSTALLED else _PACKAGE.parent
"""Folder with workflow/, task_suites/, config/ and slurm_profile/. In PYTHONPATH it provides only this
package and no other, so that the Python of another environment can import it."""

SNAKEFILE = ROOT / "workflow" / "Snakefile"
CONFIG_VARIABLE = "EVALUATION_CONFIG"
"""Environment variable with the configuration file of a run, for its jobs and for commands."""

DEFAULT_CONFIG = Path("config/config.yaml")

PROFILE = ROOT / "slurm_profile"
SUITES = ROOT / "task_suites"

"""The version of this package, and the place of its workflow.

Imports only the standard library; pyproject.toml reads the version.
"""

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

"""Where the workflow lies: its rules, suites, profile and lock file, in a checkout and as installed.

Imports nothing but the standard library. In a checkout they lie beside the package; a wheel has them in
the package, as pyproject.toml maps them.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "checkout"

IS_INSTALLED = _INSTALLED.is_dir()

ROOT = _INSTALLED if IS_INSTALLED else _PACKAGE.parent
"""Holds workflow/, task_suites/, config/ and slurm_profile/. As a part of PYTHONPATH it leads to this
package and to no other one, so that the Python of another environment can have it."""

SNAKEFILE = ROOT / "workflow" / "Snakefile"
PROFILE = ROOT / "slurm_profile"
SUITES = ROOT / "task_suites"

# Finds and imports the package, which reading the configuration needs.
import inspect
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

# The package is next to these rules, unless Snakemake fetched the rules alone from their host.
_beside = Path(inspect.currentframe().f_code.co_filename).absolute().parents[2]
if (_beside / "evaluation").is_dir() and str(_beside) not in sys.path:
    sys.path.insert(0, str(_beside))
try:
    from evaluation.version import ROOT
except ModuleNotFoundError:
    raise WorkflowError(
        f"the package staged-evaluation is not installed for {sys.executable}; install the version "
        "whose rules these are by `pip install PATH_OR_URL`"
    )

from evaluation.orchestration.internals import Internals
from evaluation.orchestration.stops import RunError

PART = Internals(workflow).part


def default_configuration(path):
    """Return the path; stop if there is no such file and `--configfile` names no other."""
    if Path(path).exists() or PART("overwrite_configfiles"):
        return path
    raise RunError(
        f"{path}: no such file in {Path.cwd()}; name a configuration by --configfile FILE, or start "
        f"in {ROOT}"
    )

# What must be there before the configuration can be read and the package imported.
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

# Of this file, as the main Snakefile is either of two.
ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from evaluation.environment import missing_environment

if _missing := missing_environment():
    raise WorkflowError(_missing)


def default_configuration(path):
    """The path itself; stops where no such file is and no other one is named."""
    if Path(path).exists() or workflow.overwrite_configfiles:
        return path
    raise WorkflowError(
        f"{path}: no such file in {Path.cwd()}; name a configuration by --configfile FILE, or start "
        f"in {ROOT}"
    )

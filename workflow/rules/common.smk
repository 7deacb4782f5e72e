# The run, and functions that the rules call. Longer code is in the package `evaluation`.
import inspect
import re
import shlex
import sys
from pathlib import Path

# The package is next to these rules, unless Snakemake fetched the rules alone from their host.
_beside = Path(inspect.currentframe().f_code.co_filename).absolute().parents[2]
if (_beside / "evaluation").is_dir() and str(_beside) not in sys.path:
    sys.path.insert(0, str(_beside))

from evaluation.flow.hooks import end, start
from evaluation.flow.run import PlannedRun, or_stop, place_option, steps_option
from evaluation.results.stage_files import PAGE
from evaluation.settings.tiers import TIERS
from evaluation.version import ROOT

RUN = PlannedRun(config, workflow.configfiles)

# The shell of every job begins with this: it sets the Python, the package and the run's configuration.
JOB = [f"{ROOT}/workflow/scripts/job.sh", str(ROOT), sys.executable, RUN.config_file]
JOB = shlex.join([*JOB, RUN.settings])
RESULTS = RUN.config.results
SHOWN = f".made/shown-{RUN.name}"
RESULT_FILES = sorted({file for tier in TIERS.values() for file in tier.files})


def job(command):
    """Return a shell command that begins with JOB."""
    return ". {} && {}".format(JOB.replace("{", "{{").replace("}", "}}"), command)


def one_of(names):
    """Return a pattern of these names."""
    return "|".join(map(re.escape, names))


def shown(path, caption, **labels):
    """Return a file of the report, with its caption in `snakemake --report`."""
    category = Path(path).parts[-2] if path != f"{RESULTS}/{PAGE}" else "overview"
    caption = f"../report/{caption}.rst"
    return report(update(path), caption=caption, category=category, labels=labels)


wildcard_constraints:
    setup=one_of(RUN.setups),
    results=one_of(RUN.by_results),
    place=r"by_checkpoint/step_\d+|bridge",
    batch=r"bridge|\d+(?:_\d+)*",
    key=r"[0-9a-f]{16}(?:-\d+)?",
    part=r"(?:\.\d+of\d+)?",
    file=one_of(RESULT_FILES),

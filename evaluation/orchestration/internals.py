"""What we use of Snakemake and its Slurm executor beyond what they document, looked for at the start.

dag_settings.rerun_triggers    Snakemake's own reasons to run a job again are switched off: records
                               decide (records.py)
dag_settings.force_incomplete  files of a killed run need no flag: every file is written whole
execution_settings.keep_incomplete  nor does a failed job remove what it has found there
execute(executor_plugin=…)     whether a run is a dry one, and its targets, before anything is planned
scheduler._executor, …         see slurm.py, which lets a run live with lost and pre-empted jobs
"""

from importlib.metadata import version
from typing import Any

from evaluation.errors import EvaluationError

TESTED = "9.27"


def require(owner: object, *names: str) -> None:
    """Raises EvaluationError where Snakemake lacks something that we rely on."""
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        raise EvaluationError(
            f"Snakemake {version('snakemake')} has no {type(owner).__name__}.{missing[0]}, which this "
            f"workflow relies on; install the version it is tested with (pip install 'snakemake~={TESTED}')"
        )


def decide_by_records(workflow: Any) -> None:
    """Lets records alone decide what runs again; files of a run that ended badly are whole or not there."""
    from snakemake.settings.enums import RerunTrigger

    require(workflow, "dag_settings", "dag", "execution_settings", "is_main_process")
    require(workflow.dag, "forcefiles")
    require(workflow.dag_settings, "rerun_triggers", "force_incomplete", "forcerun")
    require(RerunTrigger, "MTIME")
    workflow.dag_settings.rerun_triggers = frozenset({RerunTrigger.MTIME})
    workflow.dag_settings.force_incomplete = True
    if workflow.execution_settings is not None:  # as it is where no job is to run
        require(workflow.execution_settings, "keep_incomplete")
        workflow.execution_settings.keep_incomplete = True

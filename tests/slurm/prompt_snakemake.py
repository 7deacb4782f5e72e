"""Snakemake whose Slurm executor asks the queue every 3 s, however long nothing has happened.

As shipped it waits 10 s longer after each round in which no job ended, which would be most of the
time of a test of one short job.
"""

import sys

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor

SECONDS = 3.0


def _keep(executor: Executor, seconds: float) -> None:
    """Takes the executor's own idea of the next pause, and forgets it."""


if __name__ == "__main__":
    Executor.next_seconds_between_status_checks = property(lambda executor: SECONDS, _keep)
    sys.exit(main())

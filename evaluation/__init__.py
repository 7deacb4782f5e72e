"""Evaluates the checkpoints of a staged pretraining run.

`load` is the only public part of the package; all else is the workflow's and may change.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.version import __version__

if TYPE_CHECKING:
    from evaluation.reporting.load import LoadedResults

__all__ = ["__version__", "load"]


def load(folder: "str | Path") -> "LoadedResults":
    """Open the results of a run as pandas DataFrames.

    `load("results").table("stage2")` has every value of a stage; docs/results_in_pandas.md shows the rest.

    Args:
        folder: Folder of all results (`results` in the configuration), or of one stage.
    """
    from evaluation.reporting.load import load_results

    return load_results(folder)

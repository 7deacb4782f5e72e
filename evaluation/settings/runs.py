"""Other runs that are laid over the one of a configuration."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from evaluation.settings.model import ExpandedPath, Settings

By = Literal["steps", "tokens"]
"""What checkpoints of two runs are matched by, and their curves drawn over."""

THIS_RUN = "this run"
LONGEST = 40


class OtherRun(Settings):
    """A run of the same suites, scored elsewhere; nothing of it is scored or written here."""

    path: ExpandedPath = Field(
        description="Its configuration file, its results folder, or that of one of its stages."
    )
    by: By = Field("steps", description="`tokens`: match checkpoints by tokens seen, not by steps.")


def check_runs(names: Iterable[str]) -> None:
    """Raises ValueError for what a legend cannot show."""
    for name in names:
        if not name.isprintable() or name != name.strip() or not 0 < len(name) <= LONGEST:
            raise ValueError(
                f"runs.{name!r}: a run's name has 1 to {LONGEST} characters that can be printed, and "
                "neither begins nor ends with a space"
            )
        if name == THIS_RUN:
            raise ValueError(f"runs.{name}: pages call the run itself so; choose another name")

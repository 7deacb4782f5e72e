"""Settings of other runs that are compared with this one, and of the run that curves are exported to."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from evaluation.settings.model import ExpandedPath, Settings, Text
from evaluation.settings.names import check_label

By = Literal["steps", "tokens"]
"""By what the checkpoints of two runs are matched: the x-axis of their curves."""

THIS_RUN = "this run"
LONGEST = 40


class OtherRun(Settings):
    """A run of the same suites, scored elsewhere; nothing of it is scored or written here."""

    path: ExpandedPath = Field(
        description="Its configuration file, its results folder, or that of one of its stages."
    )
    by: By = Field(
        "steps", description="`tokens`: match checkpoints by training tokens, not by steps."
    )


def _check_run(name: str) -> str:
    if name == THIS_RUN:
        raise ValueError(f"{name!r} is what pages call the run itself; choose another name")
    return check_label(name, LONGEST)


RunName = Annotated[str, AfterValidator(_check_run)]


class WeightsAndBiases(Settings):
    """The run that curves are exported to; later exports go to the same run."""

    project: Text = Field("staged-evaluation", description="Project, such as that of the training.")
    run: Text | None = Field(
        None, description="Name of the run; that of the results folder if not given."
    )

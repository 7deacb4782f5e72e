"""Settings of other runs that are compared with this one."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from evaluation.settings.model import ExpandedPath, Settings
from evaluation.settings.names import LABEL

By = Literal["steps", "tokens"]
"""By what the checkpoints of two runs are matched: the x-axis of their curves."""

THIS_RUN = "this run"


class OtherRun(Settings):
    """A run of the same suites, scored elsewhere; nothing of it is scored or written here."""

    path: ExpandedPath = Field(description="Its configuration, its results, or those of a stage.")
    by: By = Field("steps", description="`tokens`: match checkpoints by training tokens.")


def _other(name: str) -> str:
    if name == THIS_RUN:
        raise ValueError(f"{name!r} is what pages call the run itself; choose another name")
    return name


RunName = Annotated[str, Field(pattern=LABEL, max_length=40), AfterValidator(_other)]

"""Settings of other runs that are compared with this one."""

from typing import Annotated, Literal

from pydantic import Field

from evaluation.settings.model import ExpandedPath, Settings
from evaluation.settings.names import LABEL

By = Literal["steps", "tokens"]

THIS_RUN = "this run"


class OtherRun(Settings):
    """A run of the same suites, scored elsewhere; nothing of it is scored or written here."""

    path: ExpandedPath = Field(description="Its configuration, its results, or those of a stage.")
    by: By = Field("steps", description="`tokens`: match checkpoints by training tokens.")


RunName = Annotated[str, Field(pattern=LABEL, max_length=40)]

"""What exported curves are called in the tools that show them."""

from pydantic import Field

from evaluation.settings.model import Settings, Text


class WeightsAndBiases(Settings):
    """The run that curves are exported to; an export anew goes to the same one."""

    project: Text = Field("staged-evaluation", description="Project, such as that of the training.")
    run: Text | None = Field(
        None, description="Name of the run; that of the results folder if not given."
    )

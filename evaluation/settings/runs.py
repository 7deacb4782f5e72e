"""Settings of other runs that are compared with this one, and of published scores."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluation.errors import no_such
from evaluation.settings.model import ExpandedPath, Settings, Text
from evaluation.settings.names import LABEL, Label
from evaluation.settings.tiers import TIERS, TierName

By = Literal["steps", "tokens"]

THIS_RUN = "this run"


class OtherRun(Settings):
    """A run of the same suites, scored elsewhere."""

    path: ExpandedPath = Field(description="Its configuration, its results, or those of a stage.")
    by: By = Field("steps", description="`tokens`: match checkpoints by training tokens.")


class PublishedScores(Settings):
    """Scores of a model as somebody published them."""

    source: Text = Field(description="Where they stand: an address, or a paper with its table.")
    tier: TierName = Field("tier3", description="Tier of the items.")
    metric: str | None = Field(None, description="Metric, if not the tier's headline.")
    scores: dict[Label, Annotated[float, Field(ge=-1e6, le=1e6)]] = Field(
        min_length=1, description="Value of each item: a fraction for accuracies."
    )

    @model_validator(mode="after")
    def _are_of_the_metric(self) -> Self:
        tier = TIERS[self.tier]
        names = [metric.name for metric in tier.metrics]
        if self.measured not in names:
            raise ValueError(f"metric: {no_such('metric', self.measured, names)}")
        if tier.metric(self.measured).unit == "fraction" and max(self.scores.values()) > 1:
            raise ValueError("scores: an accuracy is a fraction; write 0.43 for 43 %")
        return self

    @property
    def measured(self) -> str:
        """Name of the metric."""
        return self.metric or TIERS[self.tier].headline


RunName = Annotated[str, Field(pattern=LABEL, max_length=40)]

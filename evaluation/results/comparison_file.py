"""Typed models of `comparison.json` and `comparison.csv`, which compare runs."""

from typing import Literal

from pydantic import Field

from evaluation.results.columns import columns_of
from evaluation.results.delta_rows import DeltaColumns, High, TierOf
from evaluation.results.files import FileModel, StageFile, optional
from evaluation.settings.runs import By

COMPARISON = "comparison.json"
COMPARISON_TABLE = "comparison.csv"
COMPARISON_PAGE = "comparison.html"
COMPARISON_FILES = (COMPARISON_TABLE, COMPARISON, COMPARISON_PAGE)

Steps = tuple[int | None, int | None]
"""Steps of two matched checkpoints."""


class ComparisonRow(DeltaColumns):
    """A delta A - B at two matched checkpoints. Stable: new columns go to the end."""

    run_a: str = Field(description="The run A.")
    run_b: str = Field(description="The run B.")
    stage_a: str = Field(description="Stage of A.")
    stage_b: str = Field(description="Stage of B.")
    step_a: int | None = Field(description="Step of A's checkpoint.")
    step_b: int | None = Field(description="Step of B's checkpoint.")
    tokens_a: int | None = Field(description="A's training tokens.")
    tokens_b: int | None = Field(description="B's training tokens.")
    value_a: float = Field(description="A's value.")
    value_b: float = Field(description="B's value.")
    low_all: float | None = Field(
        description="Lower end of the simultaneous interval over all matched checkpoints of two runs."
    )
    high_all: High


class LeadRow(FileModel):
    """Which run is better in one metric, and from which step on."""

    tier: TierOf
    item: str = Field(description="Slice, task or category, or `overall`.")
    metric: str = Field(description="`delta_` and the name of the metric.")
    better: Literal["A", "B"] | None = Field(
        description="The run that is better at the last matched checkpoints; null if they are not significantly different."
    )
    since_step_a: int | None = Field(description="A's step from which on it is better.")
    since_step_b: int | None = Field(description="B's step that is matched with it.")
    checkpoints: int = Field(description="Number of matched checkpoints since then.")
    confidence: float = Field(description="Level of one interval at which all hold simultaneously.")
    sentence: str = Field(description="The same in words.")
    averaged: int = optional("Last matched checkpoints whose mean decides; 0 for too few.", 0)
    mean: float | None = optional("That mean of A - B.")
    mean_low: float | None = optional("Lower end of its interval, with the noise of checkpoints.")
    mean_high: float | None = optional("Upper end of that interval.")


class StageComparison(FileModel):
    """One stage of two runs."""

    stage_a: str = Field(description="Stage of A.")
    stage_b: str = Field(description="Stage of B.")
    by: By = Field(description="What checkpoints were matched by.")
    checkpoints: int = Field(description="Matched checkpoints.")
    across_tokenizers: bool = Field(description="Whether the tokenizers differ.")
    notes: tuple[str, ...] = Field(description="Notes on the comparison.")
    corrected_for: str = Field(description="What `leads` are corrected for.")
    leads: tuple[LeadRow, ...] = Field(description="Which run is better, the overall values first.")
    deltas: tuple[ComparisonRow, ...] = Field(description="All deltas.")

    @property
    def title(self) -> str:
        """The stage's name; both names where the runs call it differently."""
        return " against ".join(dict.fromkeys((self.stage_a, self.stage_b)))

    @property
    def by_match(self) -> dict[Steps, list[ComparisonRow]]:
        """Its deltas by the steps of A and B, in the order of the comparison."""
        comparison_rows: dict[Steps, list[ComparisonRow]] = {}
        for row in self.deltas:
            comparison_rows.setdefault((row.step_a, row.step_b), []).append(row)
        return comparison_rows

    @property
    def matched(self) -> str:
        """The number of compared checkpoints and their steps; of more than 12 steps the first 10 and the last."""
        words = [str(a) if a == b else f"{a} (B's {b})" for a, b in self.by_match]
        shown = words if len(words) < 13 else [*words[:10], "…", words[-1]]
        many = "s" if len(words) > 1 else ""
        return f"{len(words)} matched checkpoint{many} by {self.by}: A's step {', '.join(shown)}"


class RunComparison(FileModel):
    """Two runs, or two checkpoints as runs of one each."""

    run_a: str = Field(description="The run A.")
    run_b: str = Field(description="The run B.")
    path_a: str = Field(description="Where A's results were found.")
    path_b: str = Field(description="Where B's results were found.")
    error: str | None = optional("Why the two could not be compared.")
    notes: tuple[str, ...] = optional("Stages that are not compared, and why.", ())
    stages: tuple[StageComparison, ...] = optional("Their stages.", ())


class Comparison(StageFile):
    """`comparison.json`."""

    protocol: str = Field(description="Version of the bridge's computation.")
    comparisons: tuple[RunComparison, ...] = Field(description="This run with each of the others.")


COMPARISON_COLUMNS = columns_of(
    ComparisonRow,
    "run_a run_b stage_a stage_b step_a step_b tokens_a tokens_b tier item group metric value_a "
    "value_b delta low high low_all high_all",
)

"""How much each slice and task can tell: `<stage>/task_quality.csv` and `task_quality.json`."""

from pathlib import Path

from pydantic import Field

from evaluation import protocol
from evaluation.errors import ResultsError
from evaluation.results.columns import columns_of
from evaluation.results.files import FileModel, parse_json, parse_model, read_text
from evaluation.settings.tiers import TierName

QUALITY = "task_quality.json"
QUALITY_TABLE = "task_quality.csv"

_AGAIN = "run Snakemake again with the configuration of that run"


class QualityRow(FileModel):
    """A metric of a slice or task over a stage. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    tier: TierName = Field(description="Name of the tier.")
    item: str = Field(description="Slice or task.")
    group: str | None = Field(description="Group that objectives refer to.")
    metric: str = Field(description="The headline, or the first secondary metric.")
    checkpoints: int = Field(description="Checkpoints of the stage that have it.")
    value: float = Field(description="Its value at the last one.")
    above_chance: float | None = Field(
        description="Standard errors by which that is above chance (z)."
    )
    monotonicity: float | None = Field(
        description="Spearman's correlation with the steps; 1 is steady gain. Of 3 checkpoints or more."
    )
    noise: float | None = Field(
        description="Standard deviation between neighbouring checkpoints, the trend taken off."
    )
    signal: float | None = Field(
        description="Gain along a straight line from the first to the last checkpoint."
    )
    signal_to_noise: float | None = Field(description="Size of `signal` over `noise`.")
    agreement: float | None = Field(
        description="Share of pairs of checkpoints that gold bits per byte order alike."
    )
    n: int = Field(description="Blocks, questions or prompts.")
    compared_with: str | None = Field(
        description="What the last checkpoint's items were paired with."
    )
    difference: float = Field(description="Difference that is to be decided.")
    needed: int | None = Field(
        description="Blocks, questions or prompts that show it with probability 0.8 (paired)."
    )
    too_small: bool | None = Field(description="Whether there are fewer than `needed`.")
    in_split: int | None = Field(
        description="How many its data have, whatever the suite's limit; null if that is not known."
    )


class TaskQuality(FileModel):
    """`task_quality.json`."""

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of what reports show.")
    alpha: float = Field(description="Significance level of the tests that `needed` refers to.")
    power: float = Field(description="Power of these tests.")
    advice: tuple[str, ...] = Field(description="What would decide the undecided objectives.")
    rows: tuple[QualityRow, ...] = Field(description="Each slice's and task's metrics.")


QUALITY_COLUMNS = columns_of(QualityRow)


def read_quality(path: Path) -> TaskQuality:
    """A stage's `task_quality.json`; raises ResultsError, also where it is of another version."""
    text = read_text(path, _AGAIN)
    found = parse_json(path, text, _AGAIN).get("protocol")
    if found != protocol.REPORT:
        raise ResultsError(
            f"{path}: written by report protocol {found!r}, not {protocol.REPORT!r}; remove it and "
            f"{_AGAIN}"
        )
    return parse_model(path, text, TaskQuality, _AGAIN)

"""Typed models of the `bridge_deltas` files: a step's and a stage's deltas and verdicts.

<step>/bridge_deltas.json     deltas in long form, one verdict for each objective, the step's verdict
<stage>/bridge_deltas.csv     the deltas of all steps
<stage>/bridge_deltas.json    the same with all verdicts
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from evaluation import protocol
from evaluation.results.columns import columns_of
from evaluation.results.files import FileModel, StageFile, optional
from evaluation.settings.candidates import Candidate
from evaluation.settings.metric import Metric
from evaluation.settings.objectives import aim_in_words, objective_in_words
from evaluation.settings.tiers import TIERS, TierName

DELTAS = "bridge_deltas.json"
STAGE_TABLE = "bridge_deltas.csv"

Flag = Literal["better", "worse", "unclear"]
ObjectiveVerdict = Literal["met", "not met", "undecided"]

TierOf = Annotated[TierName, Field(description="Name of the tier.")]
Group = Annotated[str | None, Field(description="Group that objectives refer to.")]
StepValue = Annotated[float, Field(description="The step's value.")]
BridgeValue = Annotated[float, Field(description="The bridge's value.")]
Low = Annotated[float | None, Field(description="Lower end of the 95 % interval of the delta.")]
High = Annotated[float | None, Field(description="Upper end of that interval.")]
P = Annotated[float | None, Field(description="Two-sided p-value of no difference.")]
Mde = Annotated[
    float | None,
    Field(
        description="Minimum detectable effect (MDE) of the test; no change of a fraction is "
        "detectable if it is 1 or more."
    ),
]
Items = Annotated[int, Field(description="Blocks, questions or prompts.")]
Note = Annotated[str | None, Field(description="Why a value is unknown.")]
"""Columns that rows of several files share."""


class CandidateEntry(FileModel):
    """An entry on a step, by its number, or on a merge, by its name."""

    step: int | None = Field(description="The step; null for a merge.")
    merge: str | None = optional("Name of the merge; null for a step.")

    @model_validator(mode="after")
    def _is_named(self) -> Self:
        if (self.step is None) == (self.merge is None):
            raise ValueError("`step` and `merge`: one of them has to be null, and the other not")
        return self

    @property
    def candidate(self) -> Candidate:
        """The step's number, or the merge's name."""
        step = self.step if self.merge is None else self.merge
        assert step is not None  # as it was read
        return step


class DeltaColumns(FileModel):
    """The columns of a delta between any two checkpoints."""

    tier: TierOf
    item: str = Field(description="Slice, task or category, or `overall`.")
    group: Group
    metric: str = Field(description="`delta_` and the name of the metric.")
    delta: float = Field(description="`value` minus `bridge_value`; of runs, A's minus B's.")
    low: Low
    high: High
    p: P
    p_holm: float | None = Field(description="That p-value, corrected over the primary deltas.")
    mde: Mde
    n: Items
    clusters: int = Field(description="Number of independent units: items, or clusters of them.")
    higher_is_better: bool = Field(description="Whether a positive delta is better.")
    primary: bool = Field(description="Whether the correction for multiple tests includes it.")
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")
    method: str = Field(description="How interval and p-value were computed.")
    note: Note

    @property
    def definition(self) -> Metric:
        """The metric of the delta."""
        return TIERS[self.tier].metric(self.metric)


class DeltaRow(DeltaColumns):
    """A delta of one metric of one item. Stable: new columns go to the end."""

    stage: str = Field(description="Name of the stage.")
    step: int | None = Field(description="Step of the checkpoint.")
    bridge: str = Field(description="The bridge, by the last two folders of its path.")
    value: StepValue
    bridge_value: BridgeValue
    merge: str | None = optional("Name of the merge; null for a step.")

    @property
    def candidate(self) -> Candidate | None:
        """Its step or merge; None where a comparison is of neither."""
        return self.step if self.merge is None else self.merge


class Change(FileModel):
    """A value of a step, the bridge's, and the interval of their difference."""

    tier: TierOf
    value: StepValue
    bridge_value: BridgeValue
    delta: float = Field(description="Their difference.")
    low: Low
    high: High


class SecondaryRow(FileModel):
    """The result of a secondary metric where an objective is undecided."""

    metric: str = Field(description="`delta_` and the name of the metric.")
    shows: Literal["better", "worse", "undecided"] = Field(
        description="What its interval alone shows."
    )
    delta: float = Field(description="Over the objective's items.")
    low: float = Field(description="Lower end of its 95 % interval.")
    high: float = Field(description="Upper end of that interval.")
    sentence: str = Field(description="The same in words.")


class RecipeRow(FileModel):
    """An objective's delta as a difference of recipes: its interval includes the noise of checkpoints."""

    low: float = Field(description="Lower end of the interval.")
    high: float = Field(description="Upper end of that interval.")
    se_checkpoints: float = Field(description="Standard error from the choice of checkpoints.")
    checkpoints: int = Field(description="Last checkpoints that the noise was estimated from.")
    bridge_checkpoints: int | None = optional(
        "Last checkpoints of the bridge's own stage that its noise was read from; null if it is assumed equal."
    )
    verdict: ObjectiveVerdict = Field(description="Verdict on the objective by this interval.")
    sentence: str = Field(description="The same in words.")


class NoiseRow(FileModel):
    """How much an item's headline varies between the last checkpoints of a stage, in standard deviations."""

    tier: TierOf
    item: str = Field(description="Slice, task or category.")
    metric: str = Field(description="Its headline.")
    checkpoints: int = Field(description="Last checkpoints.")
    level: float = Field(description="Of the level; a trend counts as variation.")
    flicker: float = Field(description="Of the mean, from the flicker of single answers.")


class ObjectiveRow(Change):
    """The verdict on a step by one objective of its stage."""

    want: Literal["improve", "keep"] = Field(description="`improve`, or `keep`.")
    group: str | None = Field(description="Group of items of the objective; null for all.")
    margin: float = Field(description="Smallest gain, or largest loss, that counts.")
    verdict: ObjectiveVerdict = Field(description="`met`, `not met` or `undecided`.")
    metric: str = Field(description="Metric that decides it.")
    items: tuple[str, ...] = Field(description="Its slices, tasks or categories.")
    mde: Mde
    regressions: tuple[str, ...] = Field(description="Items that are significantly worse.")
    why: str = Field(description="The verdict's reason in words.")
    secondary: SecondaryRow | None = optional("A secondary metric, if the objective is undecided.")
    shares: dict[str, float] = optional("Each item's share of the variance of their mean.", {})
    limited_by: str | None = optional(
        "What limits an undecided mean: the item with the largest share, and what would be detectable otherwise."
    )
    recipe: RecipeRow | None = optional(
        "The delta with the noise of checkpoints; in a stage's files, of three checkpoints or more."
    )

    @property
    def definition(self) -> Metric:
        """The metric that decides it."""
        return TIERS[self.tier].metric(self.metric)

    @property
    def gain(self) -> float:
        """The difference, positive where it is better."""
        return self.delta if self.definition.higher_is_better else -self.delta

    @property
    def in_words(self) -> str:
        """The metric that decides it, with the tier's title and its group."""
        return objective_in_words(self.tier, self.definition, self.group)

    @property
    def aim(self) -> str:
        """What is wanted of the metric."""
        return aim_in_words(self.want, self.margin, self.definition)


class GroupDelta(Change):
    """The headline's delta among the prompts of a fixed group, such as a level or a subject."""

    item: str = Field(description="Generation task.")
    by: str = Field(description="Name of the grouping.")
    group: str = Field(description="Name of the group.")
    prompts: int = Field(description="Prompts of the group with verdicts on both sides.")
    p: P
    p_holm: float | None = Field(description="That p-value, corrected over all groups of the step.")
    mde: Mde
    flag: Flag | None = Field(description="`better`, `worse` or `unclear`, if it is tested.")


class PositionDelta(Change):
    """The headline's delta at some positions of a slice: descriptive, and of no family of tests."""

    item: str = Field(description="Slice.")
    first: int = Field(description="First position: tokens that the model sees before it.")
    last: int = Field(description="Last position.")
    tokens: int = Field(description="Scored tokens there.")
    n: int = Field(description="Blocks with tokens there.")
    note: Note


class PassRateChanges(FileModel):
    """How many of a task's prompts went from one band of pass rates to another."""

    tier: TierOf
    item: str = Field(description="Generation task.")
    bands: tuple[str, ...] = Field(description="Bands of pass rates, in words.")
    counts: tuple[tuple[int, ...], ...] = Field(
        description="Prompts; a row for each band at the bridge, a column for each at the step."
    )


class ComparedCheckpoint(FileModel):
    """One of the two checkpoints that are compared."""

    path: str = Field(description="Folder of the checkpoint.")
    identity: str = Field(description="Changes with the checkpoint's files.")
    step: int | None = Field(description="Its step.")
    merge: str | None = optional("Its name, if it is a merge.")
    protocols: dict[str, str] = Field(description="Version of each tier's computation.")
    tokenizer: str | None = Field(description="Fingerprint or name of its tokenizer.")
    sequence_length: int = Field(description="Tokens of a block.")
    gpu: str | None = optional("Model of the GPU, or of all GPUs; null on a CPU.")
    row_tokens: tuple[int, ...] = optional("Tokens per packed row, of all its scores.", ())


class StepVerdict(CandidateEntry):
    """The verdict on a step or merge, with those on its objectives."""

    verdict: ObjectiveVerdict | None = Field(
        description="On the objective; null without one. In a stage's files, corrected for the choice among its checkpoints."
    )
    own_verdict: ObjectiveVerdict | None = optional(
        "Its verdict if it had been the only checkpoint."
    )
    objectives: tuple[ObjectiveRow, ...] = Field(
        description="For each entry of `objective`, in order."
    )


class StepDeltas(StepVerdict, StageFile):
    """A step's `bridge_deltas.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("bridge", protocol.BRIDGE)

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of the bridge's computation.")
    confidence: float = Field(description="Confidence level of the intervals.")
    alpha: float = Field(description="Significance level of the tests.")
    power: float = Field(description="Power that the minimum detectable effect refers to.")
    checkpoint: ComparedCheckpoint = Field(description="The step's checkpoint.")
    bridge: ComparedCheckpoint = Field(description="The bridge.")
    notes: tuple[str, ...] = optional(
        "Differences between the two sides that do not prevent a comparison.", ()
    )
    deltas: tuple[DeltaRow, ...] = Field(description="All deltas.")
    groups: tuple[GroupDelta, ...] = optional("Deltas for each group of prompts (`strata`).", ())
    moves: tuple[PassRateChanges, ...] = optional("Prompts by pass rate before and after.", ())
    by_position: tuple[PositionDelta, ...] = optional(
        "Deltas of the loss by position, of slices with at least two bins.", ()
    )


class StageDeltas(StageFile):
    """A stage's `bridge_deltas.json`."""

    VERSION: ClassVar[tuple[str, str] | None] = ("bridge", protocol.BRIDGE)

    stage: str = Field(description="Name of the stage.")
    protocol: str = Field(description="Version of the bridge's computation.")
    left_out: tuple[str, ...] = optional("Steps without deltas, and why.", ())
    provisional: bool = optional("Whether configured steps are still to come.", False)
    awaited: tuple[Candidate, ...] = optional("Those steps, and merges by name.", ())
    notes: tuple[str, ...] = optional(
        "Differences from the bridge that do not prevent a comparison, and where.", ()
    )
    verdicts: tuple[StepVerdict, ...] = Field(description="Of all steps.")
    deltas: tuple[DeltaRow, ...] = Field(description="Of all steps.")


DELTA_COLUMNS = columns_of(DeltaRow, "stage step bridge tier item group metric value bridge_value")

"""Settings of data sources, and of the slices and tasks that are made from their rows."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from evaluation.settings.model import (
    Boolean,
    Count,
    ExpandedPath,
    Integer,
    Seed,
    Settings,
    Text,
)
from evaluation.settings.names import Label
from evaluation.settings.tiers import TaskKind

Normalization = Literal["raw", "per_char", "per_byte", "per_token", "pmi"]

Attention = Literal["block", "document"]
"""What a token of a packed block can attend to: the whole block, or its own document."""

Shots = Annotated[Integer, Field(ge=0, le=1000)]


class Source(Settings):
    """Rows of a dataset on the hub, in a mirror of it, or in local files."""

    VIEWS: ClassVar[frozenset[str]] = frozenset({"group", "streaming"})
    """Keys that do not change what is fetched."""

    dataset: str | None = Field(None, pattern="^[^/~.]", description="Hub id, as under `mirrors`.")
    config: Text | None = Field(None, description="Configuration (subset) of the dataset.")
    split: Text = Field("train", description="Split to read.")
    revision: Text | None = Field(None, description="Commit or branch of the dataset on the hub.")
    data_files: tuple[Text, ...] = Field((), description="Files inside the dataset's repository.")
    files: tuple[ExpandedPath, ...] = Field(
        (), description="Local Parquet, JSONL or text files, in place of a dataset."
    )
    streaming: Boolean = Field(False, description="Read rows as needed, without a download.")

    @property
    def definition(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude=set(self.VIEWS))

    @model_validator(mode="after")
    def _one_origin(self) -> "Source":
        if (self.dataset is None) == (not self.files):
            raise ValueError("give either `dataset`, a name on the hub, or `files`")
        return self


class Slice(Source):
    """Text that is packed into token blocks and scored by perplexity."""

    VIEWS: ClassVar[frozenset[str]] = Source.VIEWS | {"attention"}

    text: Text = Field("text", description="Field, or a template over fields.")
    tokens: Count = Field(5_000_000, description="Tokens to keep (whole blocks).")
    skip_documents: Integer = Field(0, ge=0, le=10**12, description="Documents to skip first.")
    attention: Attention | None = Field(None, description="If not the suite's.")
    group: Label | None = Field(None, description="Name that objectives refer to, e.g. `hq`.")


class Task(Source):
    """Questions whose candidate answers are ranked by log-likelihood (cloze formulation).

    Without `choices` the continuation is the right answer itself, and nothing is ranked.
    """

    VIEWS: ClassVar[frozenset[str]] = Source.VIEWS | {"primary"}

    configs: tuple[Text, ...] = Field((), description="Several as one task: MMLU's subjects.")
    let: dict[str, Text] = Field({}, description="Expressions for the templates, in order.")
    choices: Text | None = Field(None, description="Expression: the list of candidate answers.")
    gold: Text | None = Field(None, description="Expression: index of the right one of `choices`.")
    context: str = Field(
        description='Template over the row\'s fields (`row["…"]` for any name), `choice` and `index`.'
    )
    continuation: Text = Field(" {{ choice }}", description="Template of what is scored.")
    cluster: Text | None = Field(None, description="Template of a sampled group, e.g. a passage.")
    stratum: Text | None = Field(None, description="Template of a fixed group, e.g. a subject.")
    unconditional_context: str | None = Field(None, description="What `pmi` subtracts: `Answer:`.")
    primary: Normalization = Field("raw", description="Normalization of the task's accuracy.")
    limit: Count = Field(12_000, description="Most items, evenly over `configs`.")
    num_fewshot: Shots = Field(0, description="Solved examples before a question.")
    fewshot_split: Text = Field("train", description="Split the examples are taken from.")
    fewshot_seed: Seed | None = Field(None, description="Seed to draw them; if none, the first.")
    description: str = Field("", description="Template put before the examples.")
    group: Label | None = Field(None, description="Name that objectives refer to.")

    @property
    def kind(self) -> TaskKind:
        return "gold" if self.choices is None else "ranked"

    @property
    def asked(self) -> dict[str, Any]:
        """What is scored: the gold answer only with solved examples, which end in it."""
        unasked = {"cluster", "stratum"} if self.num_fewshot else {"cluster", "stratum", "gold"}
        return {key: value for key, value in self.definition.items() if key not in unasked}

    @model_validator(mode="after")
    def _consistent(self) -> "Task":
        if self.config is not None and self.configs:
            raise ValueError("give either `config` or `configs`")
        if self.primary == "pmi" and self.unconditional_context is None:
            raise ValueError("`primary: pmi` needs `unconditional_context`")
        if self.kind == "ranked" and self.gold is None:
            raise ValueError("`choices` need `gold`, the index of the right one")
        if self.kind == "gold" and "continuation" not in self.model_fields_set:
            raise ValueError("give `choices` to rank, or `continuation`, the right answer itself")
        for key in self.model_fields_set & {"gold", "primary", "unconditional_context"}:
            if self.kind == "gold" and getattr(self, key) is not None:
                raise ValueError(f"`{key}` is of ranked `choices`, which are not given; remove it")
        return self

"""A stage of a configuration: its checkpoints, tokenizer, suites, bridge and objective."""

import os
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from evaluation.settings.checkpoint_folders import Checkpoints, ListedCheckpoint, step_folder
from evaluation.settings.model import (
    Boolean,
    ExpandedPath,
    Fraction,
    OutputPath,
    SequenceLength,
    Settings,
    Step,
    Text,
    distinct,
)
from evaluation.settings.names import Label
from evaluation.settings.objectives import Objective
from evaluation.settings.requested_steps import Steps
from evaluation.settings.tokenizer import Tokenizer


class Bridge(Settings):
    """The baseline checkpoint that a stage is compared with."""

    stage: Text | None = Field(None, description="Stage it belongs to.")
    step: Step | None = Field(None, description="Its step; else its last one.")
    path: ExpandedPath | None = Field(None, description="Checkpoint folder, in place of a stage.")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.stage is None) == (self.path is None) or (self.path and self.step is not None):
            raise ValueError("give either `stage` (with `step`) or `path`")
        return self


class Assumed(Settings):
    """What a stage assumes about checkpoints whose config.yaml is missing."""

    use_mup: Boolean = Field(description="Whether they were trained with muP.")


class Stage(Settings):
    """One stage of training: its checkpoints and what they are evaluated on."""

    given: Checkpoints = Field(
        alias="checkpoints",
        description="Folder with a folder per step (`1000`, `step_1000`, `iter_0001000`, "
        "`checkpoint-1000` …), or a list of `{path, step, name}`.",
    )
    steps: Steps = Field(description="List of steps, `all`, or `{every: N}` (found on disk).")
    open_ended: Boolean = Field(False, description="Set by a run: `steps` are those found so far.")
    suites: Annotated[tuple[Label, ...], AfterValidator(distinct)] = Field(
        min_length=1, description="Suites, by file name."
    )
    bridge: Bridge | None = Field(None, description="Checkpoint to compare with.")
    objective: tuple[Objective, ...] = Field((), description="What to improve or keep.")
    results: OutputPath | None = Field(None, description="Results folder; `<results>/<stage>`.")
    tokenizer: Tokenizer | None = Field(None, description="If not the top level's.")
    sequence_length: SequenceLength | None = Field(None, description="If not the top level's.")
    training_config: ExpandedPath | None = Field(None, description="If not the top level's.")
    allow_shorter_sequences: Boolean = Field(False, description="Score fewer tokens than trained.")
    assume: Assumed | None = Field(None, description="If config.yaml is missing.")
    command: str | None = Field(None, pattern=r"\S", description="Program in place of the engine.")
    command_hours: Fraction = Field(24.0, gt=0, le=1000, description="Time for one checkpoint.")

    @property
    def listed(self) -> tuple[ListedCheckpoint, ...]:
        return self.given if isinstance(self.given, tuple) else ()

    @property
    def checkpoints(self) -> str:
        if isinstance(self.given, str):
            return self.given
        return os.path.commonpath(
            [os.path.dirname(os.path.abspath(one.path)) for one in self.given]
        )

    def folder_of(self, step: int) -> Path:
        listed = {checkpoint.step: checkpoint.path for checkpoint in self.listed}
        return Path(listed[step]) if step in listed else step_folder(Path(self.checkpoints), step)

    @property
    def names(self) -> dict[int, str]:
        return {checkpoint.step: checkpoint.name for checkpoint in self.listed if checkpoint.name}

    @field_validator("objective")
    @classmethod
    def _each_once(cls, objectives: tuple[Objective, ...]) -> tuple[Objective, ...]:
        distinct(tuple((o.tier, o.group, o.decided_on.name, o.want) for o in objectives))
        return objectives

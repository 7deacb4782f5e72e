"""A stage of a configuration: its checkpoints, tokenizer, suites, bridge and objective."""

from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from evaluation.settings.checkpoint_folders import (
    CheckpointsPath,
    ListedCheckpoint,
    read_checkpoints,
    step_folder,
)
from evaluation.settings.model import (
    Boolean,
    ExpandedPath,
    Fraction,
    OutputPath,
    SequenceLength,
    Settings,
    Step,
    Text,
)
from evaluation.settings.names import Label
from evaluation.settings.objectives import Objective
from evaluation.settings.requested_steps import Steps
from evaluation.settings.tokenizer import Tokenizer


class Bridge(Settings):
    """The baseline checkpoint that a stage is compared with."""

    stage: Text | None = Field(None, description="Stage it belongs to.")
    step: Step | None = Field(None, description="Step of that stage; its last one if not given.")
    path: ExpandedPath | None = Field(None, description="Checkpoint folder, in place of a stage.")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.stage is None) == (self.path is None):
            raise ValueError("give either `stage` (with `step`) or `path`")
        if self.path is not None and self.step is not None:
            raise ValueError("`step` goes with `stage`; a `path` names the step's folder itself")
        return self


class Origin(Settings):
    """The checkpoint that a stage was trained from, where that is not its bridge."""

    stage: Text = Field(description="Stage it belongs to.")
    step: Step = Field(description="Step of that stage.")


class Assumed(Settings):
    """What a stage assumes about checkpoints whose config.yaml is missing."""

    use_mup: Boolean = Field(
        description="Whether they were trained with muP. Their tokenizer and sequence length are "
        "taken to be the stage's."
    )


class Stage(Settings):
    """One stage of training: its checkpoints and what they are evaluated on."""

    checkpoints: CheckpointsPath = Field(
        description="Folder that holds one folder per step (`1000`, `step_1000`, `iter_0001000`, "
        "`checkpoint-1000` …); or a list of `{path, step, name}` from anywhere, also in a YAML or "
        "JSON file."
    )
    listed: tuple[ListedCheckpoint, ...] = Field(
        (), description="Set by a run: the checkpoints that `checkpoints` lists."
    )
    steps: Steps = Field(description="List of steps, `all`, or `every: N` (found on disk).")
    open_ended: Boolean = Field(
        False, description="Set by a run: `steps` are those of `all` or `every: N` found so far."
    )
    suites: tuple[Label, ...] = Field(min_length=1, description="Suites, by file name.")
    bridge: Bridge | None = Field(None, description="Checkpoint to compare with; null for none.")
    trained_from: Origin | None = Field(
        None,
        description="Checkpoint where its training began, if that is not the bridge; pages draw the stage "
        "from there.",
    )
    objective: tuple[Objective, ...] = Field((), description="What to improve or keep.")
    results: OutputPath | None = Field(None, description="Results folder; `<results>/<stage>`.")
    tokenizer: Tokenizer | None = Field(None, description="Where it differs from the top level.")
    sequence_length: SequenceLength | None = Field(
        None, description="Where it differs from the top level."
    )
    training_config: ExpandedPath | None = Field(
        None, description="Where it differs from the top level."
    )
    allow_shorter_sequences: Boolean = Field(
        False, description="Accept checkpoints trained on longer sequences than are scored."
    )
    assume: Assumed | None = Field(
        None, description="What to assume if a Nanotron config.yaml is missing."
    )
    command: str | None = Field(
        None, description="External program that scores in place of the engine."
    )
    command_hours: Fraction = Field(
        24.0, gt=0, le=1000, description="Time that `command` may take for one checkpoint."
    )

    @model_validator(mode="before")
    @classmethod
    def _read_list(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, dict) or given.get("listed"):
            return given
        checkpoints = read_checkpoints(given.get("checkpoints"), info)
        return (
            given
            if checkpoints is None
            else {**given, "checkpoints": checkpoints[0], "listed": checkpoints[1]}
        )

    def folder_of(self, step: int) -> Path:
        """Return the folder of a step, which need not exist."""
        listed = next(
            (
                listed_checkpoint.path
                for listed_checkpoint in self.listed
                if listed_checkpoint.step == step
            ),
            None,
        )
        return Path(listed) if listed else step_folder(Path(self.checkpoints), step)

    @property
    def names(self) -> dict[int, str]:
        """What the list of checkpoints calls steps, where it has names."""
        return {checkpoint.step: checkpoint.name for checkpoint in self.listed if checkpoint.name}

    @field_validator("objective")
    @classmethod
    def _each_once(cls, given: tuple[Objective, ...]) -> tuple[Objective, ...]:
        goals = [
            (
                objective.tier,
                objective.group,
                objective.decided_on.name,
                objective.want,
                objective.average,
            )
            for objective in given
        ]
        for number, goal in enumerate(goals):
            if (first := goals.index(goal)) < number:
                raise ValueError(f"entry {number} decides the same as entry {first}; leave one out")
        return given

    @field_validator("suites")
    @classmethod
    def _each_suite_once(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for name in given:
            if given.count(name) > 1:
                raise ValueError(f"{name} appears twice; leave one out")
        return given

    @field_validator("command")
    @classmethod
    def _not_empty(cls, command: str | None) -> str | None:
        if command is not None and not command.strip():
            raise ValueError("is empty; leave the key out to score with the built-in engine")
        return command

"""`config/config.yaml`: the stages, their checkpoints, suites, bridges and objectives."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from evaluation.errors import ConfigError
from evaluation.settings.model import ExpandedPath, Settings, one_sentence
from evaluation.settings.suites import Suite, load_suite, merge_suites, read_yaml
from evaluation.settings.tiers import TIERS, TierName

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
"""What a stage, slice or task may be called, as it becomes a folder name."""


class Every(Settings):
    """Every step on disk that is a multiple of `every`."""

    every: int = Field(gt=0, description="Steps on disk that are multiples of this.")


def _read_steps(value: Any) -> Any:
    written = re.fullmatch(r"\s*every\s*:\s*(\d+)\s*", value) if isinstance(value, str) else None
    return {"every": int(written[1])} if written else value


Steps = Annotated[
    tuple[int, ...] | Literal["all"] | Every,
    BeforeValidator(_read_steps),
]


class Tokenizer(Settings):
    """The tokenizer of a stage."""

    name: str = Field(description="Hub id or folder.")
    revision: str | None = Field(None, description="Commit or branch on the hub.")
    use_fast: bool = Field(True, description="False takes the slow (sentencepiece) one.")
    prepend_bos: bool = Field(False, description="Put BOS before every document and context.")
    also_known_as: tuple[str, ...] = Field(
        (), description="Other names that checkpoints give for this same tokenizer."
    )


class Bridge(Settings):
    """The checkpoint that a stage is measured against."""

    stage: str | None = Field(None, description="Stage it belongs to.")
    step: int | None = Field(None, description="Step of that stage; its last one if not given.")
    path: ExpandedPath | None = Field(None, description="Checkpoint folder, in place of a stage.")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.stage is None) == (self.path is None):
            raise ValueError("give either `stage` (with `step`) or `path`")
        if self.path is not None and self.step is not None:
            raise ValueError("`step` goes with `stage`; a `path` names the step's folder itself")
        return self


class Aim(Settings):
    """One thing a stage is for: to improve on the bridge, or to keep what it had."""

    tier: TierName = Field(description="Tier the aim is about.")
    want: Literal["improve", "keep"] = Field(description="Gain on the bridge, or lose nothing.")
    group: str | None = Field(None, description="Only slices or tasks of this group.")
    margin: float = Field(
        ge=0,
        description="Smallest gain that counts (`improve`) or largest loss allowed (`keep`): "
        "nats per token for tier2, a fraction for tier3 and tier4.",
    )


class Scoring(Settings):
    """How models run; none of these changes a score by more than floating-point noise but dtype."""

    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="`auto`: a GPU if there is one."
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="`auto`: the checkpoint's own on a GPU, float32 on CPU."
    )
    row_tokens: int = Field(
        16_384,
        gt=0,
        description="Tokens of one forward pass on a GPU; lower it if memory runs out.",
    )
    cpu_row_tokens: int = Field(1024, gt=0, description="The same on CPU.")
    generation_batch: int = Field(64, gt=0, description="Probes answered at once.")


class Assumed(Settings):
    """What a stage takes for granted of checkpoints whose config.yaml is not there to say it."""

    use_mup: bool = Field(
        description="Whether they were trained with muP. Their tokenizer and sequence length are "
        "taken to be the stage's."
    )


class Stage(Settings):
    """One stage of training: its checkpoints and what they are evaluated on."""

    checkpoints: ExpandedPath = Field(description="Folder that holds one folder per step.")
    steps: Steps = Field(description="List of steps, `all`, or `every: N` (found on disk).")
    suites: tuple[str, ...] = Field(min_length=1, description="Suites, by file name.")
    bridge: Bridge | None = Field(None, description="Checkpoint to compare with; null for none.")
    objective: tuple[Aim, ...] = Field((), description="What the stage is for.")
    results: ExpandedPath | None = Field(None, description="Results folder; `<results>/<stage>`.")
    tokenizer: Tokenizer | None = Field(None, description="Where it differs from the top level.")
    sequence_length: int | None = Field(None, gt=1, description="Likewise.")
    training_config: ExpandedPath | None = Field(None, description="Likewise.")
    allow_shorter_sequences: bool = Field(
        False, description="Accept checkpoints trained on longer sequences than are scored."
    )
    assume: Assumed | None = Field(
        None, description="What to take for granted where a Nanotron config.yaml is missing."
    )
    command: str | None = Field(
        None, description="External program that scores in place of the engine."
    )
    command_hours: float = Field(
        24.0, gt=0, le=1000, description="Time that `command` may take for one checkpoint."
    )

    @field_validator("steps")
    @classmethod
    def _distinct(cls, steps: Any) -> Any:
        if isinstance(steps, tuple) and (
            not steps or len(set(steps)) < len(steps) or min(steps) < 0
        ):
            raise ValueError("steps must be distinct, not negative, and at least one")
        return steps


class Config(Settings):
    """Everything a run is told."""

    results: ExpandedPath = Field(description="Folder for all results.")
    cache: ExpandedPath = Field(description="Folder for prefilled tokens, examples and prompts.")
    suites: ExpandedPath = Field("task_suites", description="Folder of the task suites.")
    mirrors: dict[str, ExpandedPath] = Field(
        {}, description="Dataset id to a local folder or file; `*` is a folder of mirrors by id."
    )
    tokenizer: Tokenizer | None = Field(
        None, description="Taken from `training_config` or the checkpoints if not given."
    )
    sequence_length: int | None = Field(None, gt=1, description="Likewise.")
    training_config: ExpandedPath | None = Field(None, description="Nanotron training YAML.")
    scoring: Scoring = Field(Scoring(), description="How models are run.")
    stages: dict[str, Stage] = Field(min_length=1, description="The stages in training order.")

    @model_validator(mode="after")
    def _stages_fit(self) -> Self:
        for name, stage in self.stages.items():
            if not re.fullmatch(NAME, name):
                raise ValueError(f"stages.{name}: a stage's name must match {NAME}")
            _check_bridge(name, stage, self.stages)
        return self


def _check_bridge(name: str, stage: Stage, stages: dict[str, Stage]) -> None:
    bridge = stage.bridge
    if bridge is None or bridge.stage is None:
        return
    key = f"stages.{name}.bridge"
    if bridge.stage not in stages:
        raise ValueError(f"{key}.stage: no stage {bridge.stage!r}; there are {', '.join(stages)}")
    owner = stages[bridge.stage]
    if owner.checkpoints != stage.checkpoints:
        return
    if not isinstance(stage.steps, tuple) or bridge.step is None or bridge.step in stage.steps:
        raise ValueError(
            f"{key}: step {bridge.step or 'last'} of {bridge.stage} is also a step of {name}, so its "
            "delta would be zero by construction; take it out of `steps` or choose another bridge"
        )


def load_config(path: str | Path) -> Config:
    """Reads and validates a configuration file.

    Raises:
        ConfigError: naming the file, the key and the mend.
    """
    return validate_config(read_yaml(Path(path)), str(path))


def validate_config(content: dict[str, Any], origin: str) -> Config:
    """Validates a mapping that came from `origin`; raises ConfigError like `load_config`."""
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        raise one_sentence(error, origin) from None


def stage_suite(config: Config, stage: str) -> Suite:
    """All that a stage evaluates; raises ConfigError where two suites clash or nothing is left."""
    if stage not in config.stages:
        raise ConfigError(
            f"no stage {stage!r} in the configuration; there are {', '.join(config.stages)}"
        )
    folder = Path(config.suites)
    named = [(name, load_suite(folder, name)) for name in config.stages[stage].suites]
    suite = merge_suites(named, folder)
    for item in (*suite.slices, *suite.tasks):
        if not re.fullmatch(NAME, item):
            raise ConfigError(
                f"{folder}: the name {item!r} must match {NAME}, as it becomes a folder"
            )
    if not (suite.slices or suite.tasks or suite.probes):
        raise ConfigError(
            f"stages.{stage}.suites: {', '.join(config.stages[stage].suites)} hold no items"
        )
    return suite


def stage_tiers(suite: Suite) -> tuple[TierName, ...]:
    """The tiers that a suite fills."""
    return tuple(name for name, tier in TIERS.items() if getattr(suite, tier.section))

"""`config/config.yaml`: the stages, their checkpoints, suites, bridges and objectives."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from evaluation.errors import no_such
from evaluation.settings.computing import GenerationSettings, Scoring, Verification
from evaluation.settings.model import (
    ExpandedPath,
    OutputPath,
    SequenceLength,
    Settings,
    config_error,
)
from evaluation.settings.names import Name, check_folders, check_names
from evaluation.settings.provided import Providers
from evaluation.settings.runs import OtherRun, PublishedScores, RunName
from evaluation.settings.stage import Stage
from evaluation.settings.tokenizer import Tokenizer
from evaluation.settings.yaml_files import read_yaml
from evaluation.version import SUITES

WORKING_FOLDER = "working_folder"
"""Key that a run adds to its copy of the configuration: the folder that relative paths belong to."""


def _or_shipped(folder: str) -> str:
    """Return the folder of shipped suites for its default name, unless such a folder is here."""
    return str(SUITES) if folder == SUITES.name and not os.path.isdir(folder) else folder


class Config(Settings):
    """The whole configuration of a run."""

    results: OutputPath = Field(description="Folder for all results.")
    cache: OutputPath = Field(description="Folder for prefilled tokens, examples and prompts.")
    suites: Annotated[ExpandedPath, AfterValidator(_or_shipped)] = Field(
        SUITES.name, validate_default=True, description="Folder of your suites, if any."
    )
    folders: tuple[str, ...] = Field(
        (),
        description="Set by a run: where `files` of suites are looked for first.",
    )
    mirrors: dict[str, ExpandedPath] = Field(
        {}, description="Local folder or file by dataset id; `*`: a folder of mirrors."
    )
    tokenizer: Tokenizer | None = Field(
        None,
        description="Default: that of `training_config` or of a Nanotron checkpoint.",
    )
    sequence_length: SequenceLength | None = Field(
        None,
        description="Tokens of a block. Default: as for the tokenizer.",
    )
    training_config: ExpandedPath | None = Field(
        None,
        description="Nanotron's training YAML, which has tokenizer, sequence length and window.",
    )
    scoring: Scoring = Field(Scoring(), description="How models are run.")
    generation: GenerationSettings = Field(GenerationSettings(), description="What writes answers.")
    verification: Verification = Field(Verification(), description="How answers are verified.")
    providers: Providers = Field(Providers(), description="Paths of the task providers' Pythons.")
    stages: dict[Name, Stage] = Field(min_length=1, description="The stages in training order.")
    runs: dict[RunName, OtherRun] = Field(
        {}, description="Other runs of the same suites, to compare with."
    )
    references: dict[RunName, PublishedScores] = Field(
        {},
        description="Published scores of other models: lines in curves.",
    )

    @cached_property
    def origin(self) -> str:
        """Where it was read, as `validate_config` sets it; no setting, so that equal settings are equal."""
        return ""

    def key(self, name: str) -> str:
        return f"{self.origin}: {name}" if self.origin else name

    @model_validator(mode="after")
    def _stages_fit(self) -> Self:
        check_names(self.stages)
        results = {n: s.results or f"{self.results}/{n}" for n, s in self.stages.items()}
        check_folders(self.results, self.cache, results)
        for name, stage in self.stages.items():
            owner = stage.bridge.stage if stage.bridge else None
            if owner is not None and owner not in self.stages:
                missing = no_such("stage", owner, self.stages)
                raise ValueError(f"stages.{name}.bridge.stage: {missing}")
        return self


def load_config(path: str | Path) -> Config:
    """Read and validate a configuration file, whose paths may be relative to its folder."""
    return validate_config(read_yaml(Path(path)), str(path), [Path(path)])


def validate_config(content: dict[str, Any], origin: str, files: Sequence[Path] = ()) -> Config:
    """Validate a configuration that was read from `files`, to whose folders paths may be relative.

    The last file's folder comes first. A ConfigError names the `origin`, the key and the remedy.
    """
    context = _path_context(*files)
    content = {**context, **content}
    if isinstance(content.get(WORKING_FOLDER), str):
        folder = content.pop(WORKING_FOLDER)
        if os.path.isdir(folder) and not os.path.samefile(folder, "."):
            context = {**context, WORKING_FOLDER: folder}
            content["folders"] = [*content["folders"], folder]
    try:
        config = Config.model_validate(content, context=context)
    except ValidationError as error:
        raise config_error(error, origin, Config) from None
    config.__dict__["origin"] = origin
    return config


def _path_context(*files: Path) -> dict[str, Any]:
    folders = dict.fromkeys(str(file.absolute().parent) for file in reversed(files))
    here = os.path.realpath(".")
    return {"folders": [folder for folder in folders if os.path.realpath(folder) != here]}

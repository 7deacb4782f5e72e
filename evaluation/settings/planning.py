"""Resolve the stages of a configuration into plans, and refuse what cannot be resolved."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from evaluation.errors import ConfigError, first_few, no_such
from evaluation.files import fingerprint
from evaluation.settings.config import Config
from evaluation.settings.groups import check_groups
from evaluation.settings.model import SequenceLength, config_error
from evaluation.settings.objectives import settled_objective
from evaluation.settings.plan import StagePlan
from evaluation.settings.stage import Stage
from evaluation.settings.steps import step_of_folder
from evaluation.settings.suites import Suite, load_suite, merge_suites, settled_suite
from evaluation.settings.tiers import TIERS
from evaluation.settings.tokenizer import Tokenizer
from evaluation.settings.yaml_files import read_yaml

Found = TypeVar("Found")

_TYPES = {
    "tokenizer": TypeAdapter[Any](Tokenizer),
    "sequence_length": TypeAdapter[Any](SequenceLength),
}

_POSITIONS = "max_position_embeddings"
_MODEL_FILES = ("config.yaml", "model_config.json", "config.json")
"""Configurations that have it: of training, of Nanotron's and Hugging Face's models."""


def stage_suite(config: Config, stage: str) -> Suite:
    """Return one suite with all that a stage evaluates; raise ConfigError on a mistake."""
    folder, key = Path(config.suites), config.key(f"stages.{stage}.suites")
    suites = config.stages[stage].suites
    named = [(name, settled_suite(load_suite(folder, name, asked=key))) for name in suites]
    suite = merge_suites(named, folder)
    items = {name: getattr(suite, tier.section) for name, tier in TIERS.items()}
    if not any(items.values()):
        files = ", ".join(str(folder / f"{name}.yaml") for name, _ in named)
        raise ConfigError(f"{key}: no items in {files}; name suites that have some")
    check_groups(key, suite.groups, items)
    if suite.probes and not any(probe.headline for probe in suite.probes.values()):
        raise ConfigError(
            f"{key}: all probes have `headline: false`, so that no rate counts any; "
            "take it out of one"
        )
    return suite


def plan_stage(config: Config, name: str) -> StagePlan:
    """Resolve a stage: merged suite, settled objectives, tokenizer and sequence length."""
    suite = stage_suite(config, name)
    stage = config.stages[name]
    objectives = tuple(
        settled_objective(objective, suite, config.key(f"stages.{name}.objective.{i}"))
        for i, objective in enumerate(stage.objective)
    )
    stage = stage.model_copy(update={"objective": objectives})
    of = (config, name, stage)
    return StagePlan(
        name=name,
        config=config,
        stage=stage,
        suite=suite,
        tokenizer=_given_or_trained(*of, "tokenizer", "tokenizer", "tokenizer_name_or_path"),
        sequence_length=_given_or_trained(*of, "sequence_length", "tokens", "sequence_length"),
    )


def plan_stages(config: Config) -> dict[str, StagePlan]:
    """Resolve all stages, in the order of the configuration; raise ConfigError on a mistake."""
    plans = {name: plan_stage(config, name) for name in config.stages}
    first: dict[object, tuple[str, object]] = {}
    for plan in plans.values():
        for shared, name, definition in _shared(plan):
            owner, known = first.setdefault(shared, (plan.name, definition))
            if known != definition:
                raise ConfigError(
                    f"{config.key(f'stages.{plan.name}.suites')}: {name!r} is defined differently in the "
                    f"suites of {owner} and {plan.name}, which share it; give one of them another name"
                )
    return plans


def _shared(plan: StagePlan) -> Iterator[tuple[object, str, object]]:
    """Yield what stages share if it has one name, a group or an entry of the cache: with its definition."""
    for name, group in plan.suite.groups.items():
        yield ("groups", name), name, group
    for tier in plan.tiers:
        if not TIERS[tier].cache.per_stage:
            for name, item in getattr(plan.suite, TIERS[tier].section).items():
                template = getattr(item, "chat_template", None)
                definition = fingerprint([item.definition, template])
                yield plan.cache_folder(tier, name), name, definition


def named_stage(stages: Mapping[str, Found], name: str, origin: Path) -> Found:
    """Return a stage's value; raise ConfigError on `origin` that lists the stages if there is no such."""
    if name not in stages:
        raise ConfigError(f"{origin}: {no_such('stage', name, stages)}")
    return stages[name]


def _given_or_trained(config: Config, name: str, stage: Stage, key: str, *at: str) -> Any:
    """Return a key of the stage, or of the configuration unless the stage names a training.

    Without either it is what the training configuration, or that of the first checkpoint, has `at` a place.
    """
    own = getattr(stage, key)
    given = own if own is not None or stage.training_config else getattr(config, key)
    if given is not None:
        return given
    origin, training = _training_config(config, name, stage, key)
    found = _value_at(training, *at)
    if key == "tokenizer":
        found = {"name": found, "revision": _value_at(training, key, "tokenizer_revision") or None}
    try:
        return _TYPES[key].validate_python(found)
    except ValidationError as error:
        raise config_error(error, f"{origin}: {'.'.join(at)}", Tokenizer) from None


def model_positions(config: Config, stage: Stage) -> int | None:
    """Return the model's positions by the training configuration, or else the first checkpoint; or None."""
    given = stage.training_config or config.training_config
    kinds = [[Path(given)]] if given else [_checkpoint_files(stage, one) for one in _MODEL_FILES]
    contents = [_first_whole(paths)[1] for paths in kinds if paths]  # JSON is YAML
    places = (("model", "model_config"), ("text_config",), ())
    found = (_value_at(content, *place, _POSITIONS) for content in contents for place in places)
    return next((value for value in found if type(value) is int and value > 1), None)


def _first_whole(paths: Sequence[Path]) -> tuple[Path, Any]:
    """Return a configuration and its content; that of a half-written checkpoint is passed over."""
    for path in paths[:-1]:
        with contextlib.suppress(ConfigError):
            return path, read_yaml(path)
    return paths[-1], read_yaml(paths[-1])


def _value_at(content: Any, *keys: str) -> Any:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _by_step(path: Path) -> tuple[bool, int, str]:
    step = step_of_folder(path.parent.name)
    return step is None, step or 0, path.parent.name


def _training_config(config: Config, name: str, stage: Stage, wanted: str) -> tuple[Path, Any]:
    key = f"stages.{name}.training_config" if stage.training_config else "training_config"
    if given := stage.training_config or config.training_config:
        try:
            return Path(given), read_yaml(Path(given))
        except ConfigError as error:
            raise ConfigError(f"{config.key(key)}: {error}") from None
    folders = [listed.path for listed in stage.listed] or [stage.checkpoints]
    if absent := [path for path in folders if not Path(path).is_dir()]:
        where = f"{config.key(f'stages.{name}.checkpoints')}: {first_few(absent)}"
        raise ConfigError(f"{where}: no such folder; correct it, or wait until training makes it")
    if not (configs := _checkpoint_files(stage, "config.yaml")):
        raise ConfigError(
            f"{config.key(f'stages.{name}')}: no `{wanted}` is given, and no checkpoint under "
            f"{stage.checkpoints} has a config.yaml; set `{wanted}:` or `training_config:`"
        )
    return _first_whole(configs)


def _checkpoint_files(stage: Stage, file: str) -> list[Path]:
    places = [Path(listed_checkpoint.path, file) for listed_checkpoint in stage.listed]
    files = filter(Path.is_file, places) if places else Path(stage.checkpoints).glob(f"*/{file}")
    return sorted(files, key=_by_step)

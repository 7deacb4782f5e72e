"""A stage with everything resolved: its suite, tokenizer, sequence length and folders.

Folders, under the configured `cache` and `results`:

    <cache>/<tokenizer>-<hash>-<sequence length>/     the plan's `cache`, = EVAL_DATA_DIR
        tokenizer/                                    what prefill fetched
        ppl_slices/<slice>/{packed_tokens.pt, index.pt, meta.json}
        cf_tasks/<task>/{examples.jsonl, docs.jsonl, meta.json}
        sft_native/<stage>/{prompts.jsonl, meta.json}
        generation_tasks/<task>/{prompts.jsonl, docs.jsonl, meta.json}
    <cache>/nltk_data/                                what verifiers of instructions read
    <results>/scores/<checkpoint identity>/           the score store
    <results>/<stage>/by_checkpoint/step_<STEP>/      a step's results; of a merge merge_<NAME>/
    <results>/<stage>/bridge/                         the bridge checkpoint's results
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from evaluation.errors import ConfigError
from evaluation.files import fingerprint, unordered
from evaluation.settings.candidates import Candidate, candidate_folder
from evaluation.settings.config import Config, Stage, Tokenizer, stage_suite, stage_tiers
from evaluation.settings.groups import Group
from evaluation.settings.objectives import settled_objective
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.suites import Suite
from evaluation.settings.tiers import OF_STEPS, TIERS, TierName
from evaluation.settings.yaml_files import read_yaml
from evaluation.wording import no_such

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """A stage as it will be run."""

    name: str
    config: Config
    stage: Stage
    suite: Suite
    tokenizer: Tokenizer
    sequence_length: int

    @property
    def tiers(self) -> tuple[TierName, ...]:
        """Names of the tiers that the stage's suite fills."""
        return stage_tiers(self.suite)

    @cached_property
    def cache(self) -> Path:
        """Return the folder of everything prefilled for this tokenizer and sequence length.

        Returns:
            A folder inside the configured `cache`.
        """
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(self.tokenizer.name).name)
        wanted = self.tokenizer.model_dump(exclude={"also_known_as"})
        key = fingerprint(unordered(wanted))[:8]
        return Path(self.config.cache) / f"{slug}-{key}-{self.sequence_length}"

    @property
    def tokenizer_folder(self) -> Path:
        """The folder of the tokenizer that prefill fetched."""
        return self.cache / "tokenizer"

    def cache_folder(self, tier: TierName, name: str) -> Path:
        """Return the folder of an entry in the cache.

        Args:
            tier: Name of the entry's tier.
            name: Name of the item; of the stage where the tier has one entry for each stage.

        Returns:
            A folder inside `cache`.
        """
        return self.cache / TIERS[tier].cache.folder / name

    def cache_entries(self, tier: TierName) -> tuple[str, ...]:
        """Return the names of a tier's entries in the cache.

        Args:
            tier: Name of a tier.

        Returns:
            Names of its items, or the stage's where one entry holds all; none if the suite has no items.
        """
        items = getattr(self.suite, TIERS[tier].section)
        if TIERS[tier].cache.per_stage:
            return (self.name,) if items else ()
        return tuple(items)

    @property
    def provided(self) -> dict[tuple[TierName, str], ProviderChoices | ProviderTask]:
        """The tasks that come from a provider, by tier and name."""
        return {
            (tier, name): task
            for tier in self.tiers
            for name, task in getattr(self.suite, TIERS[tier].section).items()
            if isinstance(task, ProviderChoices | ProviderTask)
        }

    def slice_folder(self, name: str) -> Path:
        """Return the folder of a slice's packed tokens.

        Args:
            name: Name of a slice of the suite.

        Returns:
            A folder inside `cache`.
        """
        return self.cache_folder("tier2", name)

    def task_folder(self, name: str) -> Path:
        """Return the folder of a Tier3 task's questions.

        Args:
            name: Name of a Tier3 task of the suite.

        Returns:
            A folder inside `cache`.
        """
        return self.cache_folder("tier3", name)

    @property
    def probes_folder(self) -> Path:
        """The folder of the stage's prompts of Tier4."""
        return self.cache_folder("tier4", self.name)

    @property
    def nltk_data(self) -> Path:
        """The folder of what verifiers of instructions read, shared by all tokenizers."""
        return Path(self.config.cache) / "nltk_data"

    def generation_folder(self, name: str) -> Path:
        """Return the folder of a Tier5 task's prompts.

        Args:
            name: Name of a generation task of the suite.

        Returns:
            A folder inside `cache`.
        """
        return self.cache_folder("tier5", name)

    @property
    def results(self) -> Path:
        """The stage's folder of results."""
        return Path(self.stage.results or Path(self.config.results) / self.name)

    @property
    def scores(self) -> Path:
        """The root of the score store, shared by all stages."""
        return Path(self.config.results) / "scores"

    def step_folder(self, step: Candidate) -> Path:
        """Return the folder of a candidate's results.

        Args:
            step: A step or a merge of the stage.

        Returns:
            A folder inside `results`.
        """
        return self.results / "by_checkpoint" / candidate_folder(step)

    @property
    def bridge_folder(self) -> Path:
        """The folder of the bridge's results."""
        return self.results / "bridge"

    def step_log(self, step: Candidate) -> Path:
        """Return the log of a candidate's scoring, also where a job scores several steps.

        Args:
            step: A step or a merge of the stage.

        Returns:
            A file inside `results`.
        """
        folder = self.results / "eval_logs" / "slurm"
        return folder / f"{self.name}_{candidate_folder(step)}.log"

    @property
    def bridge_log(self) -> Path:
        """The log of the job that scores the bridge."""
        return self.results / "eval_logs" / "slurm" / f"{self.name}_bridge.log"

    def collect_log(self, folder: Path) -> Path:
        """Return the log of the job that verifies answers and makes results from stored scores.

        Args:
            folder: Folder of a candidate's or the bridge's results.

        Returns:
            A file inside `results`.
        """
        return self.results / "eval_logs" / "collect" / f"{folder.relative_to(self.results)}.log"

    @property
    def check_log(self) -> Path:
        """The log of the check before the stage's scoring jobs."""
        return self.results / "eval_logs" / "check.log"

    @property
    def figures_folder(self) -> Path:
        """The folder of the stage's figures."""
        return self.results / "figures"

    @property
    def figures(self) -> dict[tuple[str, TierName], Path]:
        """Files by kind and tier: those over steps always, the others where there is a bridge."""
        return {
            (kind, tier): self.figures_folder / f"{tier}_{kind}.svg"
            for tier in self.tiers
            for kind in TIERS[tier].figures
            if kind in OF_STEPS or self.stage.bridge is not None
        }

    def tier_files(self, folder: Path) -> list[Path]:
        """Return all files that scoring one checkpoint writes into its folder.

        Args:
            folder: Folder of a candidate's or the bridge's results.

        Returns:
            The summary files of all tiers; without an external program, then also the items files.
        """
        tiers = [TIERS[name] for name in self.tiers]
        summaries = [folder / tier.summary_file for tier in tiers]
        # An external program may give no per-item files.
        return summaries + ([] if self.stage.command else [folder / t.items_file for t in tiers])

    def checkpoint(self, step: int) -> Path:
        """Return the folder of a step's checkpoint.

        Args:
            step: The step's number.

        Returns:
            A folder inside the stage's `checkpoints`, which need not exist.
        """
        return Path(self.stage.checkpoints) / str(step)

    def members(self, merge: str) -> tuple[tuple[Path, float], ...]:
        """Return the checkpoints of a merge, with their weights.

        Args:
            merge: Name of a merge of the stage.

        Returns:
            Folder and weight of each member; the weights add up to 1.
        """
        stages = self.config.stages
        return tuple(
            (Path(stages[owner].checkpoints) / str(step), weight)
            for owner, step, weight in self.stage.merges[merge].members(self.name)
        )


def plan_stage(config: Config, name: str) -> StagePlan:
    """Resolve a stage.

    Args:
        config: The validated configuration.
        name: Name of the stage.

    Returns:
        The stage with its merged suite, settled objectives, tokenizer and sequence length.

    Raises:
        ConfigError: When its tokenizer or sequence length cannot be found.
    """
    suite = stage_suite(config, name)
    stage = config.stages[name]
    objectives = tuple(
        settled_objective(objective, suite, f"stages.{name}.objective.{i}")
        for i, objective in enumerate(stage.objective)
    )
    stage = stage.model_copy(update={"objective": objectives})
    return StagePlan(
        name=name,
        config=config,
        stage=stage,
        suite=suite,
        tokenizer=_tokenizer(config, name, stage),
        sequence_length=_sequence_length(config, name, stage),
    )


def plan_stages(config: Config) -> dict[str, StagePlan]:
    """Resolve all stages.

    Args:
        config: The validated configuration.

    Returns:
        The plans by name of the stage, in the order of the configuration.

    Raises:
        ConfigError: When one name would mean two things, as a group or in a shared cache.
    """
    plans = {name: plan_stage(config, name) for name in config.stages}
    seen: dict[Path, tuple[str, str]] = {}
    groups: dict[str, tuple[str, Group]] = {}
    for plan in plans.values():
        for name, group in plan.suite.groups.items():
            first, same = groups.setdefault(name, (plan.name, group))
            if same != group:
                raise ConfigError(
                    f"groups.{name} is defined differently in the suites of {first} and {plan.name}; "
                    "give one of them another name"
                )
        for folder, definition in _items_cached_alone(plan):
            owner, known = seen.setdefault(folder, (plan.name, definition))
            if known != definition:
                raise ConfigError(
                    f"{folder.name!r} is defined differently in the suites of {owner} and {plan.name}, "
                    "which share a cache; give one of them another name"
                )
    return plans


def absent_checkpoints(name: str, stage: Stage) -> str | None:
    """Return a sentence on a stage's folder of checkpoints that cannot be used.

    Args:
        name: Name of the stage.
        stage: Its configuration.

    Returns:
        The sentence where the folder does not exist, or is itself a checkpoint; otherwise None.
    """
    folder = Path(stage.checkpoints)
    if folder.is_dir():
        is_one = (folder / "model").is_dir() or (folder / "config.json").is_file()
        if not is_one or any(path.name.isdigit() for path in folder.iterdir()):
            return None
        return (
            f"stages.{name}.checkpoints: {folder} is itself a checkpoint; write the folder that holds "
            f"it and the other steps: {folder.parent}"
        )
    return (
        f"stages.{name}.checkpoints: {stage.checkpoints}: no such folder; correct the path, or wait "
        "until training makes it"
    )


def named_stage(stages: Mapping[str, Found], name: str, origin: Path) -> Found:
    """Return what belongs to a stage, by the stage's name.

    Args:
        stages: What belongs to each stage, by name.
        name: Name of a stage, which may be unknown.
        origin: Where the stages come from, for messages.

    Returns:
        The stage's value.

    Raises:
        ConfigError: When there is no such stage.
    """
    if name not in stages:
        raise ConfigError(f"{origin}: {no_such('stage', name, stages)}")
    return stages[name]


def _items_cached_alone(plan: StagePlan) -> Iterator[tuple[Path, str]]:
    """Yield folders that stages of one cache share by the item's name, and what decides their content."""
    for name in plan.tiers:
        if not TIERS[name].cache.per_stage:
            for key, item in getattr(plan.suite, TIERS[name].section).items():
                template = plan.suite.chat_template if getattr(item, "chat", False) else None
                yield plan.cache_folder(name, key), fingerprint([item.definition(), template])


def _tokenizer(config: Config, name: str, stage: Stage) -> Tokenizer:
    origin, found = _resolved(config, name, stage, "tokenizer", "tokenizer.tokenizer_name_or_path")
    if isinstance(found, Tokenizer):
        return found
    if not isinstance(found, str) or not found:
        raise ConfigError(
            f"{origin}: no tokenizer.tokenizer_name_or_path; set `tokenizer: {{name: …}}` instead"
        )
    return Tokenizer(name=found)


def _sequence_length(config: Config, name: str, stage: Stage) -> int:
    origin, found = _resolved(config, name, stage, "sequence_length", "tokens.sequence_length")
    if not isinstance(found, int) or found < 2:
        raise ConfigError(
            f"{origin}: no tokens.sequence_length of 2 or more; set `sequence_length:` instead"
        )
    return found


def _resolved(config: Config, name: str, stage: Stage, key: str, trained: str) -> tuple[Path, Any]:
    """Return what the configuration has under `key`, else what `trained` is in a training one."""
    given = getattr(stage, key)
    if given is None and stage.training_config is None:
        given = getattr(config, key)
    if given is not None:
        return Path(), given
    origin, training = _training_config(config, name, stage, key)
    section, _, inner = trained.partition(".")
    values = training.get(section)
    return origin, values.get(inner) if isinstance(values, dict) else None


def _training_config(
    config: Config, name: str, stage: Stage, wanted: str
) -> tuple[Path, dict[str, Any]]:
    given = stage.training_config or config.training_config
    if given:
        key = f"stages.{name}.training_config" if stage.training_config else "training_config"
        try:
            return Path(given), read_yaml(Path(given))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
    if absent := absent_checkpoints(name, stage):
        raise ConfigError(absent)
    configs = sorted(
        Path(stage.checkpoints).glob("*/config.yaml"),
        key=lambda path: (not path.parent.name.isdigit(), path.parent.name.zfill(20)),
    )
    if not configs:
        raise ConfigError(
            f"stages.{name}: no `{wanted}` is given, and no checkpoint under {stage.checkpoints} has a "
            f"config.yaml to take it from; set `{wanted}:` or `training_config:`"
        )
    return configs[0], read_yaml(configs[0])

"""A stage with everything resolved: its suite, tokenizer, sequence length and folders.

Folders, under the configured `cache` and `results`:

    <cache>/<tokenizer>-<hash>-<sequence length>/     the plan's `cache`, = EVAL_DATA_DIR
        tokenizer/                                    the tokenizer that prefill fetched
        ppl_slices/<slice>/{packed_tokens.pt, index.pt, meta.json}
        cf_tasks/<task>/{examples.jsonl, docs.jsonl, meta.json}
        sft_native/<stage>/{prompts.jsonl, meta.json}
        generation_tasks/<task>/{prompts.jsonl, docs.jsonl, meta.json}
    <cache>/nltk_data/                                data that verifiers of instructions read
    <results>/scores/<checkpoint identity>/           the score store
    <results>/<stage>/by_checkpoint/step_<STEP>/      a step's results
    <results>/<stage>/bridge/                         the bridge checkpoint's results
"""

import os
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evaluation.files import fingerprint, unordered
from evaluation.settings.config import Config
from evaluation.settings.stage import Stage
from evaluation.settings.steps import results_folder
from evaluation.settings.suites import Suite
from evaluation.settings.tiers import TIERS, TierName
from evaluation.settings.tokenizer import Tokenizer


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
        return tuple(name for name, tier in TIERS.items() if getattr(self.suite, tier.section))

    @cached_property
    def cache(self) -> Path:
        wanted = self.tokenizer.identity
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(wanted["name"]).name)
        key = fingerprint(unordered(wanted))[:8]
        return Path(self.config.cache) / f"{slug}-{key}-{self.sequence_length}"

    @property
    def tokenizer_key(self) -> str | None:
        """The configuration's key that sets the tokenizer; None where a training configuration names it."""
        if self.tokenizer is self.stage.tokenizer:
            return f"stages.{self.name}.tokenizer"
        return "tokenizer" if self.tokenizer is self.config.tokenizer else None

    @property
    def tokenizer_folder(self) -> Path:
        return self.cache / "tokenizer"

    def cache_folder(self, tier: TierName, name: str) -> Path:
        """Return the folder of an item's entry; of the stage's where the tier has one for each stage."""
        return self.cache / TIERS[tier].cache.folder / name

    def cache_entries(self, tier: TierName) -> tuple[str, ...]:
        """Return a tier's entries in the cache: its items, or the stage where one entry holds all."""
        items = getattr(self.suite, TIERS[tier].section)
        if TIERS[tier].cache.per_stage:
            return (self.name,) if items else ()
        return tuple(items)

    @property
    def nltk_data(self) -> Path:
        return Path(self.config.cache) / "nltk_data"

    @property
    def results(self) -> Path:
        return Path(self.stage.results or Path(self.config.results) / self.name)

    @property
    def scores(self) -> Path:
        return Path(self.config.results) / "scores"

    def step_folder(self, step: int) -> Path:
        return self.results / "by_checkpoint" / results_folder(step)

    @property
    def bridge_folder(self) -> Path:
        return self.results / "bridge"

    def score_log(self, step: int | None) -> Path:
        """Return the log of a step's scoring, or of the bridge's, where a job scores several."""
        name = "bridge" if step is None else results_folder(step)
        return self.results / "eval_logs" / "score" / f"{name}.log"

    @property
    def check_log(self) -> Path:
        return self.results / "eval_logs" / "check.log"

    @property
    def command_state(self) -> list[Any]:
        """The stage's own command, and size and time of the files that it names: a script may be edited."""
        command = self.stage.command
        try:
            words = shlex.split(command or "")
        except ValueError:  # the shell will report it
            words = (command or "").split()
        paths = [Path(word) for word in words if os.path.isfile(word)]
        return [command, [[str(p), p.stat().st_size, p.stat().st_mtime_ns] for p in paths]]

    @property
    def figures_folder(self) -> Path:
        return self.results / "figures"

    def label(self, step: int | None) -> str:
        """Return what texts call a checkpoint: `step 10`, `step 10 (its name)`, or `bridge` for None."""
        if step is None:
            return "bridge"
        name = self.stage.names.get(step)
        return f"step {step}" + (f" ({name})" if name else "")

    def checkpoint(self, step: int) -> Path:
        return self.stage.folder_of(step)

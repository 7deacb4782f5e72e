"""How each tier's cache entries are defined, made and read: one table for prefill, jobs and checks.

A definition is an entry's identity: what must be the same to use its files again. An entry is current if
its meta.json holds the definition that the configuration gives now. `tokenizer` is the meta.json of a
saved tokenizer. `settings.tiers` has folders and names of entries.

Snakemake reads this table, too, so torch and transformers are imported only when an entry is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import fingerprint
from evaluation.prefill.caches import (
    PromptCache,
    SliceCache,
    TaskCache,
    check_cached_golds,
    read_prompts,
    read_slice,
    read_task,
)
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.sources import item_state, stamps_of
from evaluation.settings import protocol
from evaluation.settings.chat import ChatSettings
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName
from evaluation.tokenizers.files import tokenizer_files
from evaluation.verification import nltk_data

_DESCRIPTION = (
    *("name", "fingerprint", "class", "prepend_bos"),
    *("vocab_size", "bos_token_id", "eos_token_id"),
)
"""Keys of a tokenizer's meta.json that each entry repeats."""


def tokenizer_state(plan: StagePlan) -> list[list[Any]] | None:
    """Return what tells whether a stage's tokenizer is still the same; None for one on the hub."""
    folder = Path(plan.tokenizer.name)
    if not folder.is_dir():
        return None
    return stamps_of(path for path in tokenizer_files(folder) if path.is_file())


def chat_template(plan: StagePlan, item: ChatSettings, tokenizer: Mapping[str, Any]) -> str:
    """Return the Jinja2 template of an item's conversations: its own (or its suite's), or the tokenizer's."""
    template = item.chat_template or tokenizer.get("chat_template")
    if template is None:
        raise SourceError(
            f"tokenizer {plan.tokenizer.name} has no chat template, and none is given for "
            f"{plan.name}: set `chat_template:` in the suite that has conversations"
        )
    return str(template)


def tokenizer_definition(plan: StagePlan) -> str:
    """Return the identity of the saved tokenizer."""
    return fingerprint([protocol.PREFILL_TOKENIZER, plan.tokenizer.identity])


Cached = SliceCache | TaskCache | PromptCache
"""An entry that was read: the input of its tier's scorer, and its meta.json."""


@dataclass(frozen=True)
class Prefill:
    """One tier's entries; a `name` is the item's, or the stage's where a stage has one entry.

    `program` is the module and function that write an entry's files and return its part of meta.json;
    they may need torch, so they are imported only then. `read` raises CacheError for an entry that is
    missing or damaged. An entry that `is_graded` also holds data for grading, which no score depends on.
    """

    tier: TierName
    program: str
    protocol: str
    read: Callable[[Path], Cached]
    is_graded: bool

    def define(
        self, plan: StagePlan, name: str, tokenizer: Mapping[str, Any], *, asked: bool = False
    ) -> str:
        """Return an entry's definition, or the part of it that scores depend on (`asked`).

        Raises SourceError or KeyError if there is none. A default window outdates no entry.
        """
        suite, window = plan.suite, plan.config.generation.window
        content: dict[str, Any] = {"protocol": self.protocol}
        if self.tier == "tier2":
            content["slice"] = suite.slices[name].definition
        elif self.tier == "tier3":
            content["task"] = suite.tasks[name].asked if asked else suite.tasks[name].definition
        elif self.tier == "tier4":
            content["probes"] = {
                name: [
                    probe.definition,
                    chat_template(plan, probe, tokenizer),
                    list(probe.stop or ()),
                ]
                for name, probe in suite.probes.items()
            }
        else:
            content["task"] = suite.generation_tasks[name].asked
        if self.tier in ("tier4", "tier5") and window is not None:
            content["window"] = window
        if self.tier == "tier5":
            task = suite.generation_tasks[name]
            content["chat_template"] = chat_template(plan, task, tokenizer) if task.chat else None
        content["tokenizer"] = [tokenizer["fingerprint"], tokenizer["prepend_bos"]]
        found = fingerprint(content | {"sequence_length": plan.sequence_length})
        if asked or self.tier != "tier5":
            return found
        return fingerprint([found, task.model_dump(mode="json", include={"document", "strata"})])

    def make(self, plan: StagePlan, name: str) -> None:
        """Make an entry in `plan.cache_folder(tier, name)`; if it is current, only check its golds."""
        task = plan.suite.generation_tasks[name] if self.tier == "tier5" else None
        if task is not None:
            nltk_data.fetch(plan.nltk_data, nltk_data.needed_by_tasks([task]))
        tokenizer = resolve_name("evaluation.prefill.tokenizers:fetch_tokenizer")(plan)
        meta: dict[str, Any] = {"definition": self.define(plan, name, tokenizer)}
        folder = plan.cache_folder(self.tier, name)
        if is_current(folder, meta["definition"], lambda known: self.state(plan, name, known)):
            if task is not None:
                check_cached_golds(plan, name)
            return
        if self.is_graded:
            meta["asked_definition"] = self.define(plan, name, tokenizer, asked=True)
        write = resolve_name(f"evaluation.prefill.{self.program}")
        with new_entry(folder) as building:
            meta["tokenizer"] = {key: tokenizer[key] for key in _DESCRIPTION}
            write_meta(building, meta | write(plan, name, tokenizer, building))

    def state(self, plan: StagePlan, name: str, known: Any) -> Any:
        """Return the state of an entry's sources, given the stored one (`sources.item_state`)."""
        tier = TIERS[self.tier]
        if tier.cache.per_stage:
            return known
        return item_state(getattr(plan.suite, tier.section)[name], plan.config, known)


_PREFILLS = (
    Prefill("tier2", "slices:prefill_slice", protocol.PREFILL_SLICE, read_slice, False),
    Prefill("tier3", "cloze:prefill_task", protocol.PREFILL_TASK, read_task, True),
    Prefill("tier4", "prompts:prefill_probes", protocol.PREFILL_PROBES, read_prompts, False),
    Prefill("tier5", "generation:prefill_task", protocol.PREFILL_GENERATION, read_prompts, True),
)

PREFILLS: Mapping[str, Prefill] = {prefill.tier: prefill for prefill in _PREFILLS}

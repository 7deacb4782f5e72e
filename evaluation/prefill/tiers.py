"""How each tier's cache entries are made and read: one table for prefill, jobs and checks.

`settings.tiers` has folders and names of entries. Snakemake reads this table, too, so torch and
transformers are imported only when an entry is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from evaluation.prefill.caches import (
    PromptCache,
    SliceCache,
    TaskCache,
    check_cached_golds,
    read_prompts,
    read_slice,
    read_task,
)
from evaluation.prefill.definitions import (
    Define,
    asked_definition,
    asked_task_definition,
    generation_definition,
    probes_definition,
    saved_description,
    slice_definition,
    task_definition,
)
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.sources import item_state
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName
from evaluation.verification import nltk_data

Cached = SliceCache | TaskCache | PromptCache
"""An entry that was read: the input of its tier's scorer, and its meta.json."""


@dataclass(frozen=True)
class Prefill:
    """One tier's entries; a `name` is the item's, or the stage's where a stage has one entry.

    `program` is the module and function that write an entry's files and return its part of meta.json;
    they may need torch, so they are imported only then. `read` raises CacheError for an entry that is
    missing or damaged. `define` returns an entry's definition, `define_asked` the part of it that scores
    depend on, where the entry also holds data for verification.
    """

    tier: TierName
    program: str
    read: Callable[[Path], Cached]
    define: Define
    define_asked: Define | None = None

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
        if self.define_asked is not None:
            meta["asked_definition"] = self.define_asked(plan, name, tokenizer)
        write = resolve_name(f"evaluation.prefill.{self.program}")
        with new_entry(folder) as building:
            meta |= {"tokenizer": saved_description(tokenizer)}
            write_meta(building, meta | write(plan, name, tokenizer, building))

    def state(self, plan: StagePlan, name: str, known: Any) -> Any:
        """Return the state of an entry's sources, given the stored one (`sources.item_state`)."""
        tier = TIERS[self.tier]
        if tier.cache.per_stage:
            return known
        return item_state(getattr(plan.suite, tier.section)[name], plan.config, known)


_PREFILLS = (
    Prefill("tier2", "slices:prefill_slice", read_slice, slice_definition),
    Prefill("tier3", "cloze:prefill_task", read_task, task_definition, asked_task_definition),
    Prefill("tier4", "prompts:prefill_probes", read_prompts, probes_definition),
    Prefill(
        "tier5",
        "generation:prefill_generation_task",
        read_prompts,
        generation_definition,
        asked_definition,
    ),
)

PREFILLS: Mapping[str, Prefill] = {prefill.tier: prefill for prefill in _PREFILLS}

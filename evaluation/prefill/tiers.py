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
from evaluation.prefill.files import stamps_of
from evaluation.prefill.sources import item_state
from evaluation.settings import protocol
from evaluation.settings.chat import ChatSettings
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName
from evaluation.tokenizers.files import tokenizer_files
from evaluation.verification import nltk_data

Define = Callable[[StagePlan, str, Mapping[str, Any]], str]
"""Returns the definition of a stage's entry from the entry's name and the saved tokenizer's meta.json,
assuming unchanged data; raises SourceError or KeyError if there is none."""

_DESCRIPTION = (
    *("name", "fingerprint", "class", "prepend_bos"),
    *("vocab_size", "bos_token_id", "eos_token_id"),
)


def saved_description(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a tokenizer's meta.json that describes the tokenizer."""
    return {key: meta[key] for key in _DESCRIPTION}


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


def _encoded(content: dict[str, Any], plan: StagePlan, tokenizer: Mapping[str, Any]) -> str:
    """Return the fingerprint of what is encoded, with how; a default window outdates no entry."""
    used = [tokenizer["fingerprint"], tokenizer["prepend_bos"]]
    return fingerprint(content | {"tokenizer": used, "sequence_length": plan.sequence_length})


def _window(plan: StagePlan) -> dict[str, int]:
    window = plan.config.generation.window
    return {} if window is None else {"window": window}


def slice_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the definition of a slice's tokens."""
    definition = plan.suite.slices[name].definition
    return _encoded({"protocol": protocol.PREFILL_SLICE, "slice": definition}, plan, tokenizer)


def task_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the definition of a task's questions and gold answers."""
    content = {"protocol": protocol.PREFILL_TASK, "task": plan.suite.tasks[name].definition}
    return _encoded(content, plan, tokenizer)


def asked_task_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the definition of a task's questions alone: the part that scores depend on."""
    content = {"protocol": protocol.PREFILL_TASK, "task": plan.suite.tasks[name].asked}
    return _encoded(content, plan, tokenizer)


def probes_definition(plan: StagePlan, _: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a stage's prompts, without checks and categories."""
    probes = {
        name: [probe.definition, chat_template(plan, probe, tokenizer), list(probe.stop or ())]
        for name, probe in plan.suite.probes.items()
    }
    content = {"protocol": protocol.PREFILL_PROBES, "probes": probes, **_window(plan)}
    return _encoded(content, plan, tokenizer)


def generation_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the identity of a generation task's prompts and documents, given unchanged data."""
    task = plan.suite.generation_tasks[name]
    documents = task.model_dump(mode="json", include={"document", "strata"})
    return fingerprint([asked_definition(plan, name, tokenizer), documents])


def asked_definition(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    """Return the part of a generation task's definition that scores depend on: its prompts alone."""
    task = plan.suite.generation_tasks[name]
    template = chat_template(plan, task, tokenizer) if task.chat else None
    content = {"protocol": protocol.PREFILL_GENERATION, "task": task.asked, **_window(plan)}
    return _encoded(content | {"chat_template": template}, plan, tokenizer)


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

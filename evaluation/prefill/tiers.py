"""How each tier's cache entries are made and read: one table for prefill, jobs and checks.

`settings.tiers` has folders and names of entries. Snakemake reads this table, too, so torch and
transformers are imported only when an entry is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

from evaluation.prefill.caches import read_prompts, read_slice, read_task
from evaluation.prefill.definitions import (
    Define,
    asked_definition,
    asked_task_definition,
    generation_definition,
    probes_definition,
    slice_definition,
    task_definition,
)
from evaluation.prefill.sources import item_state
from evaluation.settings.plan import StagePlan


class Cached(Protocol):
    """An entry that was read: the input of its tier's scorer, and its meta.json."""

    @property
    def meta(self) -> dict[str, Any]:
        """Content of the entry's meta.json."""
        ...


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """One tier's entries; a `name` is the item's, or the stage's where a stage has one entry."""

    define: Define
    """Returns an entry's definition."""
    define_asked: Define | None = None
    """Returns the part of it that scores depend on, where the entry also holds data for verification."""
    section: str = ""
    """The suite's section of items that have sources."""
    program: str
    """Module and function that makes an entry; they may need torch, so they are imported only then."""
    read: Callable[[Path], Cached]
    """Reads an entry; raises CacheError for one that is missing or damaged."""

    def make(self, plan: StagePlan, name: str) -> None:
        """Make an entry in `plan.cache_folder(tier, name)` unless it is there already."""
        resolve_name(f"evaluation.prefill.{self.program}")(plan, name)

    def state(self, plan: StagePlan, name: str, known: Any) -> Any:
        """Return the state of an entry's sources, given the stored one (`sources.item_state`)."""
        if not self.section:
            return known
        return item_state(getattr(plan.suite, self.section)[name], plan.config, known)


PREFILLS: Mapping[str, Prefill] = {
    "tier2": Prefill(
        define=slice_definition,
        section="slices",
        program="slices:prefill_slice",
        read=read_slice,
    ),
    "tier3": Prefill(
        define=task_definition,
        define_asked=asked_task_definition,
        section="tasks",
        program="cloze:prefill_task",
        read=read_task,
    ),
    "tier4": Prefill(define=probes_definition, program="prompts:prefill_probes", read=read_prompts),
    "tier5": Prefill(
        define=generation_definition,
        define_asked=asked_definition,
        section="generation_tasks",
        program="generation:prefill_generation_task",
        read=read_prompts,
    ),
}

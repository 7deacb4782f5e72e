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
from evaluation.settings.tiers import complete


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
    state: Callable[[StagePlan, str, Any], Any] = lambda plan, name, known: known
    """Returns the state of an entry's sources, given the stored one (`sources.item_state`)."""
    make: Callable[[StagePlan, str], None]
    """Makes an entry in `plan.cache_folder(tier, name)` unless it is there already."""
    read: Callable[[Path], Cached]
    """Reads an entry; raises CacheError for one that is missing or damaged."""


def _state(section: str) -> Callable[[StagePlan, str, Any], Any]:
    return lambda plan, name, known: item_state(
        getattr(plan.suite, section)[name], plan.config, known
    )


def _later(function: str) -> Callable[[StagePlan, str], None]:
    """Return what calls `module:function`; its module, which may need torch, is imported only then."""
    return lambda plan, name: resolve_name(f"evaluation.prefill.{function}")(plan, name)


PREFILLS: Mapping[str, Prefill] = complete(
    {
        "tier2": Prefill(
            define=slice_definition,
            state=_state("slices"),
            make=_later("slices:prefill_slice"),
            read=read_slice,
        ),
        "tier3": Prefill(
            define=task_definition,
            define_asked=asked_task_definition,
            state=_state("tasks"),
            make=_later("cloze:prefill_task"),
            read=read_task,
        ),
        "tier4": Prefill(
            define=probes_definition,
            make=_later("prompts:prefill_probes"),
            read=read_prompts,
        ),
        "tier5": Prefill(
            define=generation_definition,
            define_asked=asked_definition,
            state=_state("generation_tasks"),
            make=_later("generation:prefill_generation_task"),
            read=read_prompts,
        ),
    },
    "prefill.tiers.PREFILLS",
)

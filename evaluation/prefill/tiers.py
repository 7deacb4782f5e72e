"""How each tier's caches are made and read, in one table that prefill, jobs and checks go through.

Where an entry lies and what it is called stands in `settings.tiers`. Snakemake reads this table, too:
torch and transformers are imported only once something is made or read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from evaluation.prefill.definitions import (
    asked_definition,
    asked_task_definition,
    generation_definition,
    probes_definition,
    saved_description,
    slice_definition,
    task_definition,
)
from evaluation.prefill.sources import Origin, locate, locate_generation, locate_task
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import complete


class Cached(Protocol):
    """An entry as it is read: whatever its tier's scorer takes, and its meta.json."""

    @property
    def meta(self) -> dict[str, Any]: ...


Define = Callable[[StagePlan, str, Mapping[str, Any]], str | None]
"""Takes an entry's name and the saved tokenizer's meta.json; None where it cannot be told."""


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """Of one tier; a `name` is the item's, or the stage's where there is one entry for a stage."""

    define: Define
    """An entry's definition."""
    define_asked: Define | None = None
    """The part of it that scores depend on, where the entry also holds what grading reads."""
    origins: Callable[[StagePlan, str], list[Origin]]
    """What an entry's items are read from; nothing if they stand in the suite."""
    make: Callable[[StagePlan, str], None]
    """Makes an entry in `plan.cache_folder(tier, name)`; returns at once if it is there already."""
    read: Callable[[Path], Cached]
    """Raises CacheError for an entry that is missing or damaged."""


def _define_slice(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    return slice_definition(plan, name, saved_description(tokenizer))


def _slice_origins(plan: StagePlan, name: str) -> list[Origin]:
    return [locate(plan.suite.slices[name], plan.config.mirrors)]


def _make_slice(plan: StagePlan, name: str) -> None:
    from evaluation.prefill.slices import prefill_slice

    prefill_slice(plan, name)


def _read_slice(folder: Path) -> Cached:
    from evaluation.prefill.caches import read_slice

    return read_slice(folder)


def _define_task(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    return task_definition(plan, name, saved_description(tokenizer))


def _define_asked_task(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str:
    return asked_task_definition(plan, name, saved_description(tokenizer))


def _task_origins(plan: StagePlan, name: str) -> list[Origin]:
    origins, shots = locate_task(plan.suite.tasks[name], plan.config.mirrors)
    return [*origins, *shots]


def _make_task(plan: StagePlan, name: str) -> None:
    from evaluation.prefill.cloze import prefill_task

    prefill_task(plan, name)


def _read_task(folder: Path) -> Cached:
    from evaluation.prefill.caches import read_task

    return read_task(folder)


def _define_probes(plan: StagePlan, name: str, tokenizer: Mapping[str, Any]) -> str | None:
    del name
    template = plan.suite.chat_template or tokenizer.get("chat_template")
    if template is None:
        return None
    return probes_definition(plan, template, saved_description(tokenizer))


def _make_probes(plan: StagePlan, name: str) -> None:
    from evaluation.prefill.probes import prefill_probes

    del name
    prefill_probes(plan)


def _read_probes(folder: Path) -> Cached:
    from evaluation.prefill.probes import read_probes

    return read_probes(folder)


def _define_generation(
    plan: StagePlan,
    name: str,
    tokenizer: Mapping[str, Any],
    define: Callable[..., str] = generation_definition,
) -> str | None:
    template = plan.suite.chat_template or tokenizer.get("chat_template")
    if template is None and plan.suite.generation_tasks[name].chat:
        return None
    return define(plan, name, template, saved_description(tokenizer))


def _generation_origins(plan: StagePlan, name: str) -> list[Origin]:
    return locate_generation(plan.suite.generation_tasks[name], plan.config.mirrors)


def _make_generation(plan: StagePlan, name: str) -> None:
    from evaluation.prefill.generation.entry import prefill_generation_task
    from evaluation.verification import nltk_data
    from evaluation.verification.golds import check_golds

    nltk_data.fetch(plan.nltk_data, nltk_data.needed_by_tasks([plan.suite.generation_tasks[name]]))
    prefill_generation_task(plan, name, partial(check_golds, nltk_data=plan.nltk_data))


def _read_generation(folder: Path) -> Cached:
    from evaluation.prefill.generation.cache import read_generation_task

    return read_generation_task(folder)


PREFILLS: Mapping[str, Prefill] = complete(
    {
        "tier2": Prefill(
            define=_define_slice, origins=_slice_origins, make=_make_slice, read=_read_slice
        ),
        "tier3": Prefill(
            define=_define_task,
            define_asked=_define_asked_task,
            origins=_task_origins,
            make=_make_task,
            read=_read_task,
        ),
        "tier4": Prefill(
            define=_define_probes,
            origins=lambda plan, name: [],
            make=_make_probes,
            read=_read_probes,
        ),
        "tier5": Prefill(
            define=_define_generation,
            define_asked=partial(_define_generation, define=asked_definition),
            origins=_generation_origins,
            make=_make_generation,
            read=_read_generation,
        ),
    },
    "prefill.tiers.PREFILLS",
)

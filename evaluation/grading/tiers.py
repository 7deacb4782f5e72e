"""Make each tier's files from its stored scores: the content of its JSON, its units, and its other files."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa

from evaluation.files import write_jsonl, write_parquet
from evaluation.grading.completions import (
    check_samples,
    prompt_units,
    sample_rows,
    summarize_task,
    verify_samples,
)
from evaluation.grading.probes import probe_units, summarize, verified_probes
from evaluation.grading.texts import (
    block_units,
    candidates,
    question_units,
    slice_values,
    stored_rows,
)
from evaluation.grading.verdicts import find_verdicts
from evaluation.metrics.measures import MEASURES, measure_questions, summarize_questions
from evaluation.prefill.caches import (
    EXAMPLES,
    check_cached_golds,
    read_documents,
    read_prompts,
    read_questions,
)
from evaluation.results.units import ByItem, Units
from evaluation.scoring.stored_completions import counted_completions, sample_key
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore
from evaluation.verification.sandbox.run import describe_sandbox

_OF_CHATS = ("probes", "chat_template", "chat_template_kwargs", "stop")

FOLDER = "generation"
"""Folder of a folder for each task of Tier5, in that of a checkpoint's results."""

RESULTS = "results.jsonl"
"""A task's completions with their verdicts."""

Write = Callable[[Path], object]


@dataclass(frozen=True)
class TierFiles:
    """`content` is the tier's JSON; `summaries` and `counts` of its scores go into its header.

    `others` write further files, by their paths in the checkpoint's folder.
    """

    content: dict[str, Any]
    units: ByItem
    summaries: list[Mapping[str, Any]] = field(default_factory=list)
    counts: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Write] = field(default_factory=dict)


def _summarize_slices(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Summarize Tier2; overall values are unweighted means over slices that all have them."""
    tier, units, spent = TIERS["tier2"], dict[str | None, Units](), list[Mapping[str, Any]]()
    slices: dict[str, dict[str, Any]] = {}
    for name, of_suite in plan.suite.slices.items():
        item = entry["items"][name]
        rows, scores = stored_rows(store, list(map(str, range(item["blocks"]))), item["rows"])
        table = pa.Table.from_pylist(rows)
        units[name] = block_units(tier, table, item["data_checksum"])
        spent += scores
        slices[name] = {
            **slice_values(tier, units[name]),
            **_origin(item, of_suite.group),
            "attention": of_suite.attention or "block",
        }
    overall = {
        metric.key: metric.mean([values[metric.key] for values in slices.values()])
        for metric in tier.metrics
        if all(values[metric.key] is not None for values in slices.values())
    }
    counts = add_up(item["items"] for item in slices.values())
    return TierFiles({"overall": overall, "slices": slices}, units, spent, counts)


def _summarize_tasks(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Summarize Tier3; overall values are unweighted means over the tasks that have them."""
    tier, units, tables = TIERS["tier3"], dict[str | None, Units](), list[pa.Table]()
    tasks, spent = dict[str, dict[str, Any]](), list[Mapping[str, Any]]()
    for name, task in plan.suite.tasks.items():
        lines, meta = read_questions(plan.cache_folder("tier3", name))
        keys = [line.key for line in lines]
        rows, scores = stored_rows(store, keys, entry["items"][name]["choices"])
        table, primary = candidates(lines, rows), task.primary or "raw"
        questions = measure_questions(table, task.kind)
        checksum = {EXAMPLES: meta["checksum"][EXAMPLES]}
        about = {"data": meta["definition"], "data_checksum": checksum, "items": meta["items"]}
        tasks[name] = {
            **summarize_questions(questions, primary),
            "truncated_contexts": sum(row["truncated"] for row in rows),
            **_origin(about, task.group),
            "task": task.model_dump(mode="json"),
        }
        units[name] = question_units(tier, questions, primary)
        named = pa.array([name] * table.num_rows, pa.string())
        tables.append(table.add_column(0, tier.item, named))
        spent += scores
    overall = {
        key: fmean(values)
        for key in ("accuracy", "centered", "greedy", *MEASURES)
        if (values := [task[key] for task in tasks.values() if key in task])
    }
    write = partial(write_parquet, table=pa.concat_tables(tables))
    counts = add_up(item["items"] for item in tasks.values())
    content = {"overall": overall, "tasks": tasks}
    return TierFiles(content, units, spent, counts, {tier.items_file: write})


def _verify_probes(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify the stored answers of Tier4 by the checks that the suite has now."""
    tier, (rows, spent, unfinished) = TIERS["tier4"], verified_probes(plan, store, entry)
    content = {
        **summarize(rows),
        "unfinished": unfinished,
        "chats": [{key: chat[key] for key in _OF_CHATS} for chat in entry["chats"]],
        **{key: entry[key] for key in ("data", "data_checksum")},
    }
    texts = [{k: v for k, v in row.items() if k not in ("headline", "checks")} for row in rows]
    others = {tier.items_file: partial(write_jsonl, rows=texts)}
    return TierFiles(content, probe_units(tier, rows), spent, entry["items"], others)


def _verify_tasks(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify Tier5; the overall pass rate is the unweighted mean of the tasks' primary ones."""
    units, spent = dict[str | None, Units](), list[Mapping[str, Any]]()
    tasks, others = dict[str, dict[str, Any]](), dict[str, Write]()
    for name in plan.suite.generation_tasks:
        tasks[name], units[name], rows, scores = _verify_task(
            plan, store, name, entry["tasks"][name]
        )
        others[f"{FOLDER}/{name}/{RESULTS}"] = partial(write_jsonl, rows=rows)
        spent += scores
    primary = [task["verifiers"][task["primary"]]["pass_rate"] for task in tasks.values()]
    programs = any(task.runs_programs for task in plan.suite.generation_tasks.values())
    content = {
        "overall": {"pass_rate": fmean(primary)},
        "sandbox": describe_sandbox(plan.config.verification.sandbox) if programs else None,
        "generation_tasks": tasks,
    }
    return TierFiles(content, units, spent, add_up(t["items"] for t in tasks.values()), others)


def _verify_task(
    plan: StagePlan, store: ScoreStore, name: str, entry: Mapping[str, Any]
) -> tuple[dict[str, Any], Units, list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Return a task's entry of the tier's file, its prompts, its samples, and summaries of its scores.

    Raises:
        ScoringError: A completion is not stored, or too many could not be verified.
        CacheError: The task's documents are missing.
    """
    folder = plan.cache_folder("tier5", name)
    cache, documents = read_prompts(folder), read_documents(folder)
    task = settled_task(plan.suite.generation_tasks[name], cache.meta)
    check_cached_golds(plan, name)
    keys = {
        (prompt, index): sample_key(key, index)
        for prompt, key in entry["prompts"].items()
        for index in range(task.sampling.n)
    }
    wanted = entry["completions"], [*keys.values()], entry["stop"]
    stored, used = counted_completions(plan, store, name, *wanted)
    find = partial(find_verdicts, plan, store, TIERS["tier5"], name)
    samples = [(prompt, index, stored[key]) for (prompt, index), key in keys.items()]
    prompts = verify_samples(task, cache, documents, samples, find)
    check_samples(prompts, name, plan.config.verification.max_error_share)
    units = prompt_units(prompts, task.views)
    summary = {
        "group": task.group,
        "primary": next(iter(task.views)),
        **summarize_task(prompts, units, task.views),
        "views": {view: verifier.model_dump(mode="json") for view, verifier in task.views.items()},
        "answer_after": task.answer_after,
        **{key: entry[key] for key in ("decoding", "too_long", "data", "data_checksum")},
        "items": cache.meta["items"],
        **{key: entry[key] for key in ("shortened", "window", "engine") if entry.get(key)},
    }
    return summary, units, [*sample_rows(prompts)], [*used.values()]


SUMMARIZERS: Mapping[str, Callable[[StagePlan, ScoreStore, Mapping[str, Any]], TierFiles]] = {
    "tier2": _summarize_slices,
    "tier3": _summarize_tasks,
    "tier4": _verify_probes,
    "tier5": _verify_tasks,
}


def add_up(counts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the items of a tier: requested, used and left out, the last by reason."""
    counts, left_out = list(counts), Counter[str]()
    for count in counts:
        left_out.update(count["left_out"])
    sums = {key: sum(count[key] for count in counts) for key in ("asked", "used")}
    return {**sums, "left_out": dict(left_out)}


def _origin(item: Mapping[str, Any], group: str | None) -> dict[str, Any]:
    return {**{key: item[key] for key in ("data", "data_checksum", "items")}, "group": group}

"""Make each tier's files from its stored scores: the content of its JSON, and its per-item file."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.files import write_jsonl, write_parquet
from evaluation.grading.generated import verify_task
from evaluation.grading.header import add_up
from evaluation.grading.probes import (
    answered_probes,
    chats_in_file,
    generations,
    probe_jobs,
    probe_rows,
    summarize,
)
from evaluation.grading.units import block_units, question_units
from evaluation.grading.verdicts import check_errors, find_verdicts
from evaluation.metrics.measures import measure_questions, summarize_questions, with_measures
from evaluation.metrics.perplexity import check_blocks
from evaluation.metrics.positions import summarize_positions
from evaluation.prefill.caches import EXAMPLES, QuestionLine, read_questions
from evaluation.results.columns import BLOCKS, CANDIDATES, arrow_schema
from evaluation.results.kinds import Units
from evaluation.results.tier_files import TaskMeans
from evaluation.results.units_file import ByItem
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier, complete
from evaluation.store import ScoreStore
from evaluation.verification.sandbox.run import describe_sandbox

SPENT = ("seconds", "tokens_processed")

SCHEMA = arrow_schema(CANDIDATES[1:])  # the first one names the item
BLOCK_SCHEMA = arrow_schema(BLOCKS[1:])


@dataclass(frozen=True)
class TierFiles:
    """`content` is the tier's JSON; `summaries` and `counts` of its scores go into its header.

    `others` write further files, by their paths in the checkpoint's folder.
    """

    content: dict[str, Any]
    units: ByItem
    write_items: Callable[[Path], object] | None
    summaries: list[Mapping[str, Any]] = field(default_factory=list)
    counts: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)


def _summarize_slices(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Summarize Tier2; overall values are unweighted means over slices that all have them."""
    tier, units, tables = TIERS["tier2"], dict[str | None, Units](), dict[str, pa.Table]()
    slices, spent = dict[str, dict[str, Any]](), list[Mapping[str, Any]]()
    for name, of_suite in plan.suite.slices.items():
        item = entry["items"][name]
        rows, scores = _stored_rows(store, list(map(str, range(item["blocks"]))), item["rows"])
        tables[name] = pa.Table.from_pylist(rows, BLOCK_SCHEMA)
        check_blocks(tables[name])
        units[name] = block_units(tier, tables[name], item["data_checksum"])
        spent += scores
        slices[name] = {
            **{key: sum(score[key] for score in scores) for key in SPENT},
            **slice_values(tier, units[name]),
            "by_position": summarize_positions(units[name].positions, plan.sequence_length),
            **_origin(item, of_suite.group),
            "attention": of_suite.attention or "block",
        }
    overall = {
        metric.key: metric.mean([values[metric.key] for values in slices.values()])
        for metric in tier.metrics
        if all(values.get(metric.key) is not None for values in slices.values())
    }
    kinds = {values["attention"] for values in slices.values()}
    attention = kinds.pop() if len(kinds) == 1 else None
    content = {"attention": attention, "overall": overall, "slices": slices}
    return _tier_files(tier, content, units, tables, spent)


def slice_values(tier: Tier, units: Units) -> dict[str, float | None]:
    """Return a slice's metrics, and what they were computed over."""
    measured = {tier.metric(name): ratio for name, ratio in units.measured.items()}
    return {
        **{metric.key: metric.linked(ratio.value) for metric, ratio in measured.items()},
        "tokens": int(units.sums["tokens"].sum()),
        "blocks": len(units.ids),
        "bytes": int(units.sums["bytes"].sum()),
    }


def _summarize_tasks(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Summarize Tier3; overall values are unweighted means over the tasks that have them."""
    tier, units, tables = TIERS["tier3"], dict[str | None, Units](), dict[str, pa.Table]()
    tasks, spent = dict[str, dict[str, Any]](), list[Mapping[str, Any]]()
    for name, task in plan.suite.tasks.items():
        lines, meta = read_questions(plan.cache_folder("tier3", name))
        keys = [line.key for line in lines]
        rows, scores = _stored_rows(store, keys, entry["items"][name]["choices"])
        table, primary = candidates(lines, rows), task.primary or "raw"
        questions = measure_questions(table, task.kind)
        checksum = {EXAMPLES: meta["checksum"][EXAMPLES]}
        about = {"data": meta["definition"], "data_checksum": checksum, "items": meta["items"]}
        tasks[name] = {
            **{key: sum(score[key] for score in scores) for key in SPENT},
            **summarize_questions(questions, primary),
            "truncated_contexts": sum(row["truncated"] for row in rows),
            **_origin(about, task.group),
            "task": task.model_dump(mode="json"),
        }
        units[name] = question_units(tier, table, questions, primary)
        tables[name] = with_measures(table, questions)
        spent += scores
    values = {
        key: [task[key] for task in tasks.values() if key in task] for key in TaskMeans.model_fields
    }
    overall = {key: _mean(of_tasks) for key, of_tasks in values.items() if of_tasks}
    return _tier_files(tier, {"overall": overall, "tasks": tasks}, units, tables, spent)


def _stored_rows(
    store: ScoreStore, keys: Sequence[str], prefix: str
) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    """Return the row of each key in the store, in order, and the summaries of the scores."""
    rows, used = store.find_rows(prefix, set(keys), lambda row, _: row)
    if lacking := [key for key in keys if key not in rows]:
        raise ScoringError(
            f"{store.folder}: {len(lacking)} rows of {prefix} are missing; score this checkpoint again"
        )
    return [rows[key] for key in keys], [*used.values()]


def candidates(lines: Sequence[QuestionLine], stored: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a row of SCHEMA for each candidate, by each question's row in the store, in the same order."""
    counts = [len(line.sizes) for line in lines]
    sizes = np.array(list(chain.from_iterable(line.sizes for line in lines))).reshape(-1, 3).T

    def repeated(key: str) -> list[Any]:
        pairs = zip(lines, counts, strict=True)
        return [value for line, n in pairs for value in [getattr(line, key)] * n]

    def flat(key: str) -> list[Any]:
        pairs = zip(stored, counts, strict=True)
        return list(chain.from_iterable(row[key] or [None] * n for row, n in pairs))

    columns = {
        "item": repeated("id"),
        **{key: repeated(key) for key in ("cluster", "stratum", "question", "row")},
        "candidate": [number for count in counts for number in range(count)],
        "gold": [number == line.gold for line in lines for number in range(len(line.sizes))],
        **{key: flat(key) for key in ("logprob", "unconditional", "is_greedy")},
        **dict(zip(("tokens", "chars", "bytes"), sizes, strict=True)),
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)


def _verify_probes(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify the stored answers of Tier4 by the checks that the suite has now."""
    answered, spent = answered_probes(plan, store, entry)
    jobs = probe_jobs(answered)
    verdicts = find_verdicts(plan, store, TIERS["tier4"], "probes", [*jobs.values()])
    # A probe without a verdict would be in no rate.
    check_errors("probes", dict(zip(jobs, verdicts, strict=True)), 0.0)
    rows = probe_rows(answered, verdicts)
    rates, units = summarize(rows)
    content = {
        **rates,
        "unfinished": sum(probe.part is None for probe in answered.values()),
        "chats": chats_in_file(entry["chats"], answered),
        **{key: entry[key] for key in ("data", "data_checksum")},
    }
    write = partial(write_jsonl, rows=generations(rows))
    return TierFiles(content, units, write, spent, entry["items"])


def _verify_tasks(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify Tier5; the overall pass rate is the unweighted mean of the tasks' primary ones."""
    verified = {
        name: verify_task(plan, store, name, entry["tasks"][name])
        for name in plan.suite.generation_tasks
    }
    tasks = {name: outcome.summary for name, outcome in verified.items()}
    primary = [task["verifiers"][task["primary"]]["pass_rate"] for task in tasks.values()]
    programs = any(task.runs_programs for task in plan.suite.generation_tasks.values())
    content = {
        "overall": {"pass_rate": _mean(primary)},
        "sandbox": describe_sandbox(plan.config.verification.sandbox) if programs else None,
        "generation_tasks": tasks,
    }
    return TierFiles(
        content,
        {name: outcome.units for name, outcome in verified.items()},
        None,
        [summary for outcome in verified.values() for summary in outcome.scores],
        add_up(task["items"] for task in tasks.values()),
        {path: write for outcome in verified.values() for path, write in outcome.files.items()},
    )


Summarizer = Callable[[StagePlan, ScoreStore, Mapping[str, Any]], TierFiles]

SUMMARIZERS: Mapping[str, Summarizer] = complete(
    {
        "tier2": _summarize_slices,
        "tier3": _summarize_tasks,
        "tier4": _verify_probes,
        "tier5": _verify_tasks,
    },
    "grading.tiers.SUMMARIZERS",
)


def stacked(tables: Mapping[str, pa.Table], column: str) -> pa.Table:
    """Return all items' tables of one schema in one, with a new first column for the item's name."""
    return pa.concat_tables(
        table.add_column(0, column, pa.array([name] * table.num_rows, pa.string()))
        for name, table in tables.items()
    )


def _tier_files(
    tier: Tier,
    content: dict[str, Any],
    units: ByItem,
    tables: Mapping[str, pa.Table],
    spent: Iterable[Mapping[str, Any]],
) -> TierFiles:
    write = partial(write_parquet, table=stacked(tables, tier.item))
    counts = add_up(item["items"] for item in content[tier.section].values())
    return TierFiles(content, units, write, [*spent], counts)


def _origin(item: Mapping[str, Any], group: str | None) -> dict[str, Any]:
    return {**{key: item[key] for key in ("data", "data_checksum", "items")}, "group": group}


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return math.fsum(values) / len(values)

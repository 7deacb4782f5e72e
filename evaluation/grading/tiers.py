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
    answer_parts,
    answered_probes,
    chats_in_file,
    generations,
    probe_batch,
    probe_table,
    summarize,
)
from evaluation.grading.units import block_units, question_units
from evaluation.grading.verdicts import find_verdicts
from evaluation.metrics.measures import measure_questions, summarize_questions, with_measures
from evaluation.metrics.perplexity import check_blocks
from evaluation.metrics.positions import summarize_positions
from evaluation.prefill.caches import EXAMPLES, QuestionLine, read_questions
from evaluation.results.columns import BLOCKS, CANDIDATES, arrow_schema, with_columns
from evaluation.results.kinds import Units
from evaluation.results.tier_files import TaskMeans
from evaluation.results.units_file import ByItem
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, Tier, complete
from evaluation.store import ScoreStore, StoredScore
from evaluation.verification.sandbox.run import describe_sandbox

SPENT = ("seconds", "tokens_processed")

SCHEMA = arrow_schema(CANDIDATES[1:])  # the first one names the item


@dataclass(frozen=True)
class ScoredTask:
    """A table of SCHEMA, the number of truncated contexts, the scores' summaries, and the data's origin."""

    table: pa.Table
    truncated: int
    scores: Sequence[Mapping[str, Any]]
    origin: Mapping[str, Any]
    """The normalization that a provider reports."""


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
    tier, scores = TIERS["tier2"], _scores(store, entry, plan.suite.slices)
    units = dict[str | None, Units]()
    for name, score in scores.items():
        check_blocks(score.table)
        units[name] = block_units(tier, score.table, entry["items"][name]["data_checksum"])
    slices = {
        name: {
            **{key: score.summary[key] for key in SPENT},
            **slice_values(tier, units[name]),
            "by_position": summarize_positions(units[name].positions, plan.sequence_length),
            **_origin(entry["items"][name], plan.suite.slices[name].group),
            "attention": plan.suite.slices[name].attention or "block",
        }
        for name, score in scores.items()
    }
    overall = {
        metric.key: metric.mean([one[metric.key] for one in slices.values()])
        for metric in tier.metrics
        if all(metric.key in one for one in slices.values())
    }
    kinds = {one["attention"] for one in slices.values()}
    attention = kinds.pop() if len(kinds) == 1 else None
    content = {"attention": attention, "overall": overall, "slices": slices}
    tables = {name: with_columns(score.table, BLOCKS[1:]) for name, score in scores.items()}
    spent = [score.summary for score in scores.values()]
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
    scored = {
        name: _scored_task(plan, store, name, entry["items"][name]) for name in plan.suite.tasks
    }
    tier, units, tables = TIERS["tier3"], dict[str | None, Units](), dict[str, pa.Table]()
    tasks = dict[str, dict[str, Any]]()
    for name, one in scored.items():
        task = plan.suite.tasks[name]
        questions = measure_questions(one.table, task.kind)
        primary = task.primary or "raw"
        tasks[name] = {
            **{key: sum(score[key] for score in one.scores) for key in SPENT},
            **summarize_questions(questions, primary),
            "truncated_contexts": one.truncated,
            **_origin(one.origin, task.group),
            "task": task.model_dump(mode="json"),
        }
        units[name] = question_units(tier, one.table, questions, primary)
        tables[name] = with_measures(one.table, questions)
    keys = TaskMeans.model_fields
    found = {key: [task[key] for task in tasks.values() if key in task] for key in keys}
    overall = {key: _mean(values) for key, values in found.items() if values}
    spent = [score for one in scored.values() for score in one.scores]
    return _tier_files(tier, {"overall": overall, "tasks": tasks}, units, tables, spent)


def _scored_task(
    plan: StagePlan, store: ScoreStore, name: str, entry: Mapping[str, Any]
) -> ScoredTask:
    """Return a task's questions with their stored scores."""
    questions, meta = read_questions(plan.cache_folder("tier3", name))
    keys = {line.key for line in questions}
    rows, used = store.find_rows(entry["choices"], keys, lambda row, _: row)
    if lacking := keys - rows.keys():
        lost = next(line.id for line in questions if line.key in lacking)
        raise ScoringError(
            f"{store.folder}: the score of {lost} is missing ({len(lacking)} in all); score this "
            "checkpoint again"
        )
    stored = [rows[line.key] for line in questions]
    checksum = {EXAMPLES: meta["checksum"][EXAMPLES]}
    return ScoredTask(
        candidates(questions, stored),
        sum(row["truncated"] for row in stored),
        list(used.values()),
        {"data": meta["definition"], "data_checksum": checksum, "items": meta["items"]},
    )


def candidates(lines: Sequence[QuestionLine], stored: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return a row of SCHEMA for each candidate, by each question's row in the store, in the same order."""
    counts = [len(line.sizes) for line in lines]
    sizes = np.array(list(chain.from_iterable(line.sizes for line in lines))).reshape(-1, 3).T

    def repeated(values: Sequence[Any]) -> list[Any]:
        return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]

    def flat(key: str) -> list[Any]:
        return list(chain.from_iterable(row[key] for row in stored))

    unconditional = [
        row["unconditional"] or [None] * n for row, n in zip(stored, counts, strict=True)
    ]
    columns = {
        "item": repeated([line.id for line in lines]),
        "cluster": repeated([line.cluster for line in lines]),
        "stratum": repeated([line.stratum for line in lines]),
        "candidate": [number for count in counts for number in range(count)],
        "gold": [number == line.gold for line in lines for number in range(len(line.sizes))],
        "logprob": flat("logprob"),
        "unconditional": list(chain.from_iterable(unconditional)),
        **dict(zip(("tokens", "chars", "bytes"), sizes, strict=True)),
        "is_greedy": flat("is_greedy"),
        "question": repeated([line.question for line in lines]),
        "row": repeated([line.row for line in lines]),
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)


def _verify_probes(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify the stored answers of Tier4 by the checks that the suite has now."""
    probes = plan.suite.probes
    answers, templates, spent = answered_probes(plan, store, entry)
    parts = answer_parts(probes, answers, entry["texts"], templates)
    (verdicts,) = find_verdicts(plan, store, [probe_batch(probes, parts)])
    table = probe_table(probes, entry["texts"], answers, parts, verdicts)
    rates, units = summarize(table.to_pylist())
    content = {
        **rates,
        "unfinished": sum(part is None for part in parts.values()),
        "chats": chats_in_file(entry["chats"], probes),
        **{key: entry[key] for key in ("data", "data_checksum")},
    }
    write = partial(write_jsonl, rows=generations(table))
    return TierFiles(content, units, write, [*spent.values()], entry["items"])


def _verify_tasks(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify Tier5; the overall pass rate is the unweighted mean of the tasks' primary ones."""
    verified = {
        name: verify_task(plan, store, name, entry["tasks"][name])
        for name in plan.suite.generation_tasks
    }
    tasks = {name: one.summary for name, one in verified.items()}
    prompts = {name: one.prompts for name, one in verified.items()}
    primary = [task["verifiers"][task["primary"]]["pass_rate"] for task in tasks.values()]
    programs = any(task.runs_programs for task in plan.suite.generation_tasks.values())
    content = {
        "overall": {"pass_rate": _mean(primary)},
        "sandbox": describe_sandbox() if programs else None,
        "generation_tasks": tasks,
    }
    return TierFiles(
        content,
        {name: one.units for name, one in verified.items()},
        partial(write_parquet, table=stacked(prompts, "task")),
        [summary for one in verified.values() for summary in one.scores],
        add_up(task["items"] for task in tasks.values()),
        {path: write for one in verified.values() for path, write in one.files.items()},
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


def _scores(
    store: ScoreStore, entry: Mapping[str, Any], names: Iterable[str]
) -> dict[str, StoredScore]:
    """Return stored scores in the order of the suite, which may differ from the order of scoring."""
    scores = {}
    for name in names:
        item = entry["items"][name]
        score = store.read(item["score"])
        if score is None:
            raise ScoringError(
                f"{store.folder / item['score']}: the score of {name} is missing; score this "
                "checkpoint again"
            )
        scores[name] = score
    return scores


def _origin(item: Mapping[str, Any], group: str | None) -> dict[str, Any]:
    return {**{key: item[key] for key in ("data", "data_checksum", "items")}, "group": group}


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return math.fsum(values) / len(values)

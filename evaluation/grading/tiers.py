"""Makes each tier's files of its stored scores: the content of its JSON, and its per-item file."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.checkpoints.subjects import Subject
from evaluation.errors import ScoringError
from evaluation.files import write_jsonl, write_parquet, write_text
from evaluation.grading.choices import ScoredTask, scored_task
from evaluation.grading.generated import verify_task
from evaluation.grading.header import add_up, origin
from evaluation.grading.probes import end_of_thinking, generations, probe_batch, probe_table
from evaluation.grading.verdicts import find_verdicts
from evaluation.metrics.accuracy import summarize_choices
from evaluation.metrics.measures import choice_measures, summarize_gold, with_measures
from evaluation.metrics.perplexity import summarize_blocks
from evaluation.metrics.positions import summarize_positions
from evaluation.metrics.rates import summarize
from evaluation.results.tier_files import TaskMeans
from evaluation.scoring.external import LINE, command_name
from evaluation.scoring.stored_completions import counted_completions, sample_key
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderChoices
from evaluation.settings.sources import Task
from evaluation.settings.tiers import TIERS, complete
from evaluation.store import ScoreStore, StoredScore
from evaluation.verification.sandbox.run import describe_sandbox

SPENT = ("seconds", "tokens_processed")


@dataclass(frozen=True)
class TierFiles:
    """`content` is the tier's JSON; `summaries` and `counts` of its scores go into its header.

    `others` write further files, by their paths in the checkpoint's folder.
    """

    content: dict[str, Any]
    write_items: Callable[[Path], object] | None
    summaries: list[Mapping[str, Any]] = field(default_factory=list)
    counts: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)


def _summarize_slices(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Summarize Tier2; the overall perplexity is exp of the slices' mean nats per token, unweighted."""
    scores = _scores(store, entry, plan.suite.slices)
    slices = {
        name: {
            **{key: score.summary[key] for key in SPENT},
            **summarize_blocks(score.table),
            "by_position": summarize_positions(score.table, plan.sequence_length),
            **_origin(entry["items"][name], plan.suite.slices[name].group),
        }
        for name, score in scores.items()
    }
    nats = _mean([one["nats_per_token"] for one in slices.values()])
    per_byte = [one["bits_per_byte"] for one in slices.values()]
    overall = {"ppl": math.exp(nats), "nats_per_token": nats, "bits_per_byte": _mean(per_byte)}
    content = {"attention": entry["attention"], "overall": overall, "slices": slices}
    tables = {name: score.table for name, score in scores.items()}
    spent = [score.summary for score in scores.values()]
    return _tier_files(content, tables, spent, "slice", slices)


def _summarize_tasks(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Summarize Tier3; overall values are unweighted means over the tasks that have them."""
    scored = {
        name: scored_task(plan, store, name, entry["items"][name]) for name in plan.suite.tasks
    }
    tasks: dict[str, dict[str, Any]] = {}
    for name, one in scored.items():
        task = plan.suite.tasks[name]
        tasks[name] = {
            **{key: sum(score[key] for score in one.scores) for key in SPENT},
            **_summarize_task(one, task),
            "truncated_contexts": one.truncated,
            **_origin(one.origin, task.group),
            "task": task.model_dump(mode="json"),
        }
    found = {key: [one[key] for one in tasks.values() if key in one] for key in _TASK_MEANS}
    overall = {key: _mean(values) for key, values in found.items() if values}
    kinds = {name: plan.suite.tasks[name].kind for name in scored}
    measured = {name: with_measures(one.table, kinds[name]) for name, one in scored.items()}
    spent = [score for one in scored.values() for score in one.scores]
    return _tier_files({"overall": overall, "tasks": tasks}, measured, spent, "task", tasks)


_TASK_MEANS = tuple(TaskMeans.model_fields)


def _summarize_task(scored: ScoredTask, task: Task | ProviderChoices) -> dict[str, Any]:
    if task.kind == "gold":
        return summarize_gold(scored.table)
    measures = {key: float(values.mean()) for key, values in choice_measures(scored.table).items()}
    primary = task.primary or scored.primary or "raw"
    return {**summarize_choices(scored.table, primary), **measures}


def _verify_probes(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify the stored answers of Tier4 by the checks that the suite has now."""
    probes = plan.suite.probes
    keys = {name: sample_key(entry["prompts"][name], 0) for name in probes}
    stored, used = counted_completions(
        plan, store, "probes", entry["answers"], [*keys.values()], entry["stop"]
    )
    answers = {name: stored[key] for name, key in keys.items()}
    mark = end_of_thinking(plan.suite.answer_after, entry["chat_template"])
    (verdicts,) = find_verdicts(plan, store, [probe_batch(probes, answers, mark)])
    table = probe_table(probes, entry["texts"], answers, verdicts)
    content = {
        **summarize(table),
        "answer_after": mark,
        **{key: entry[key] for key in ("chat_template", "stop", "data", "data_checksum")},
    }
    write = partial(write_jsonl, rows=generations(table))
    return TierFiles(content, write, [*used.values()], entry["items"])


def _verify_tasks(plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]) -> TierFiles:
    """Verify Tier5; the overall pass rate is the unweighted mean of the tasks' primary ones."""
    verified = {
        name: verify_task(plan, store, name, entry["tasks"][name])
        for name in plan.suite.generation_tasks
    }
    tasks = {name: one.summary for name, one in verified.items()}
    prompts = {name: one.prompts for name, one in verified.items()}
    primary = [one["verifiers"][one["primary"]]["pass_rate"] for one in tasks.values()]
    programs = any(task.runs_programs for task in plan.suite.generation_tasks.values())
    content = {
        "overall": {"pass_rate": _mean(primary)},
        "sandbox": describe_sandbox() if programs else None,
        "generation_tasks": tasks,
    }
    return TierFiles(
        content,
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


def external_tier(
    subject: Subject, store: ScoreStore, tier: str, about: Mapping[str, Any]
) -> TierFiles:
    """Return what an external program wrote, under this workflow's header; its other keys stay.

    Args:
        subject: The checkpoint and its stage.
        store: Scores of one checkpoint.
        tier: The tier's name.
        about: Content of the job's record.

    Returns:
        The tier's content, and its items if the program wrote some.

    Raises:
        ScoringError: When the score is missing from the store.
    """
    name = about["tiers"][tier]["external"]
    stored = store.read(name)
    if stored is None:
        raise ScoringError(
            f"{store.folder / name}: the score is missing; score this checkpoint again"
        )
    protocol = f"external: {command_name(subject.plan.stage.command or '')}"
    content = {**stored.summary["content"], **origin(subject, about), "protocol": protocol}
    section = TIERS[tier].section
    for item, entry in (content.get(section) or {}).items():
        known = getattr(subject.plan.suite, section).get(item)
        if isinstance(entry, dict) and hasattr(known, "group"):
            entry["group"] = known.group
            entry |= {"kind": known.kind} if tier == "tier3" else {}
    if not stored.summary["has_items"]:
        return TierFiles(content, None)
    return TierFiles(content, partial(_write_external, stored.table))


def _write_external(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        write_parquet(path, table)
    else:
        write_text(path, "".join(f"{line}\n" for line in table[LINE].to_pylist()))


def stacked(tables: Mapping[str, pa.Table], column: str) -> pa.Table:
    """Return all items' tables under each other.

    Args:
        tables: Tables of one schema, by the item's name.
        column: Name of a new first column, which has the item's name.

    Returns:
        One table, in the order of `tables`.
    """
    return pa.concat_tables(
        table.add_column(0, column, pa.array([name] * table.num_rows, pa.string()))
        for name, table in tables.items()
    )


def _tier_files(
    content: dict[str, Any],
    tables: Mapping[str, pa.Table],
    spent: Iterable[Mapping[str, Any]],
    column: str,
    items: Mapping[str, Mapping[str, Any]],
) -> TierFiles:
    write = partial(write_parquet, table=stacked(tables, column))
    return TierFiles(content, write, [*spent], add_up(item["items"] for item in items.values()))


def _scores(
    store: ScoreStore, entry: Mapping[str, Any], names: Iterable[str]
) -> dict[str, StoredScore]:
    """In the order of the suite, which may be another than that in which they were scored."""
    found = {}
    for name in names:
        item = entry["items"][name]
        score = store.read(item["score"])
        if score is None:
            raise ScoringError(
                f"{store.folder / item['score']}: the score of {name} is missing; score this "
                "checkpoint again"
            )
        found[name] = score
    return found


def _origin(item: Mapping[str, Any], group: str | None) -> dict[str, Any]:
    return {**{key: item[key] for key in ("data", "data_checksum", "items")}, "group": group}


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return math.fsum(values) / len(values)

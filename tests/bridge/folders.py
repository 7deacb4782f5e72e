"""Results as the scorer writes them, drawn at random with a planted difference."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.files import write_json, write_jsonl, write_parquet
from evaluation.grading.probes import summarize
from evaluation.grading.texts import block_units, slice_values
from evaluation.metrics.measures import MEASURES, measure_questions, summarize_questions
from evaluation.metrics.positions import NATS, TOKENS, bin_starts
from evaluation.results.units import Units
from evaluation.settings.config import validate_config
from evaluation.settings.groups import centered_weights, group_weights
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.tiers import TIERS
from tests.bridge.answers import TASK, write_tier5
from tests.bridge.units import write_all_units, write_units

SUITE = {
    "slices": {"web": {"dataset": "some/web", "group": "hq"}, "code": {"dataset": "some/code"}},
    "tasks": {
        "quiz": {"dataset": "some/quiz", "choices": "c", "gold": "g", "context": "{{ q }}"},
        "exam": {"dataset": "some/exam", "choices": "c", "gold": "g", "context": "{{ q }}"},
    },
    "probes": {
        f"p{i}": {
            "category": "lists" if i % 2 else "concise",
            "messages": [{"role": "user", "content": "Say it."}],
            "checks": [{"check": "complies"}],
        }
        for i in range(2)
    },
    "generation_tasks": {"sums": TASK},
}
OBJECTIVE = [
    {"tier": "tier3", "want": "improve", "margin": 0.0},
    {"tier": "tier2", "want": "keep", "margin": 0.02},
]

GOLD = {"dataset": "some/solved", "context": "{{ q }}", "continuation": " {{ a }}"}
"""A task of which only the right answer is scored."""


def make_plans(
    root: Path,
    *,
    tiers: tuple[str, ...] = ("slices", "tasks", "probes"),
    suite: dict[str, Any] | None = None,
    objective: list[dict[str, Any]] | None = None,
    steps: tuple[int, ...] = (10, 20, 30),
    command: str | None = None,
    sequence_length: int = 64,
) -> dict[str, StagePlan]:
    """Two stages; the second has the first one's last step as its bridge."""
    suites = root / "suites"
    suites.mkdir(parents=True, exist_ok=True)
    suite = suite or {key: value for key, value in SUITE.items() if key in tiers}
    (suites / "all.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    common = {"suites": ["all"], "command": command}
    possible = [one for one in OBJECTIVE if suite.get(TIERS[one["tier"]].section)]
    second = {
        "checkpoints": str(root / "ckpts/second"),
        "steps": list(steps),
        "bridge": {"stage": "first", "step": 100},
        "objective": possible if objective is None else objective,
        **common,
    }
    content = {
        "results": str(root / "results"),
        "cache": str(root / "cache"),
        "suites": str(suites),
        "tokenizer": {"name": "some/tokenizer"},
        "sequence_length": sequence_length,
        "stages": {
            "first": {"checkpoints": str(root / "ckpts/first"), "steps": [100], **common},
            "second": second,
        },
    }
    return plan_stages(validate_config(content, "test"))


def _weights(plan: StagePlan, items: int) -> dict[str, Any]:
    """The weights of each tier's groups, whose slices and tasks have as many items."""
    groups: dict[str, Any] = {}
    for name, group in plan.suite.groups.items():
        same = dict.fromkeys(getattr(plan.suite, TIERS[group.tier].section), items)
        of_tier = groups.setdefault(group.tier, {"groups": {}, "offsets": {}})
        weights = group_weights(name, plan.suite.groups, same, same)
        if group.centered:
            chances = dict.fromkeys(weights, 0.25)
            weights, of_tier["offsets"][name] = centered_weights(weights, chances)
        of_tier["groups"][name] = weights
    return groups


def write_side(
    folder: Path,
    plan: StagePlan,
    *,
    step: int | None,
    skill: float = 0.0,
    nats: float = 3.0,
    seed: int = 0,
    items: int = 400,
    blocks: int = 120,
    prompts: int = 48,
    per_item: bool = True,
    **header: Any,
) -> Path:
    """Writes the tiers of a plan. `skill` adds to the gold candidates' log-probabilities.

    What is common to all sides (how hard items are) is drawn from one seed, what is a side's own
    from `seed`, so that sides are paired as real checkpoints are.
    """
    groups = _weights(plan, items)
    common = {
        "stage": plan.name,
        "step": step,
        "role": "bridge" if folder == plan.bridge_folder else "step",
        "checkpoint": f"/ckpts/{plan.name}/{step}",
        "checkpoint_identity": f"{plan.name}-{step}-{seed}",
        "tokenizer": {"name": "some/tokenizer", "fingerprint": "tok"},
        "sequence_length": plan.sequence_length,
        "protocol": "test-1",
        "seconds": 2.0,
        "tokens_per_second": 500.0,
        "items": {"asked": items, "used": items, "left_out": {}},
        **header,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for tier in plan.tiers:
        about = {**common, **groups.get(tier, {})}
        if tier == "tier2":
            _tier2(folder, plan, about, nats, seed, blocks)
        elif tier == "tier3":
            _tier3(folder, plan, about, skill, seed, items)
        else:
            write = _tier4 if tier == "tier4" else write_tier5
            write(folder, about, skill, seed, prompts)
    write_all_units(folder)
    if not per_item:
        for tier in (TIERS["tier2"], TIERS["tier3"]):
            (folder / tier.items_file).unlink(missing_ok=True)
            (folder / tier.units_file).unlink(missing_ok=True)
    return folder


def _tier2(folder: Path, plan: StagePlan, about: Any, nats: float, seed: int, blocks: int) -> None:
    units, entries = dict[str | None, Units](), {}
    for number, (name, item) in enumerate(plan.suite.slices.items()):
        shared, own = np.random.default_rng(number), np.random.default_rng([seed, number])
        tokens = shared.integers(40, 64, blocks)
        per_token = nats + shared.normal(0, 0.3, blocks) + own.normal(0, 0.02, blocks)
        total, size = per_token * tokens, tokens * 4
        bins = len(bin_starts(plan.sequence_length))
        there = np.tile((tokens // bins)[:, None], (1, bins))  # equal losses at all positions
        there[:, 0] += tokens % bins
        table = pa.table(
            {
                "block": np.arange(blocks, dtype=np.int32),
                "nats": total,
                "tokens": tokens.astype(np.int32),
                "bytes": size.astype(np.int64),
                NATS: (per_token[:, None] * there).tolist(),
                TOKENS: there.tolist(),
            }
        )
        units[name] = block_units(TIERS["tier2"], table, {"packed_tokens.pt": name})
        entries[name] = {
            **slice_values(TIERS["tier2"], units[name]),
            "data": name,
            "data_checksum": {"packed_tokens.pt": name},
            "group": item.group,
        }
    write_units(TIERS["tier2"], folder, units)
    metrics = TIERS["tier2"].metrics
    overall = {one.key: one.mean([e[one.key] for e in entries.values()]) for one in metrics}
    about |= {"attention": "block", "overall": overall, "slices": entries}
    write_json(folder / "tier2_ppl.json", about)


def candidates(name: str, number: int, skill: float, seed: int, items: int) -> pa.Table:
    """Four candidates an item; the first is gold."""
    shared, own = np.random.default_rng(50 + number), np.random.default_rng([seed, 50 + number])
    logprob = shared.normal(-10, 1, (items, 4)) + own.normal(0, 0.2, (items, 4))
    logprob[:, 0] = np.minimum(logprob[:, 0] + 0.5 + skill, 0.0)
    clusters = [f"subject {i % 20}" if name == "exam" else None for i in range(items)]
    rows = items * 4
    return pa.table(
        {
            "item": [f"{name}/{i}" for i in range(items) for _ in range(4)],
            "cluster": pa.array(np.repeat(clusters, 4), pa.string()),
            "candidate": np.tile(np.arange(4, dtype=np.int16), items),
            "gold": np.tile([True, False, False, False], items),
            "logprob": logprob.ravel(),
            "unconditional": pa.array([None] * rows, pa.float64()),
            "tokens": np.full(rows, 2, np.int32),
            "chars": np.full(rows, 8, np.int32),
            "bytes": np.full(rows, 8, np.int32),
            "is_greedy": logprob.ravel() > -9.5,
            **{name: pa.nulls(rows, pa.string()) for name in ("stratum", "question", "row")},
        }
    )


def _tier3(folder: Path, plan: StagePlan, about: Any, skill: float, seed: int, items: int) -> None:
    tables, entries = [], {}
    for number, (name, task) in enumerate(plan.suite.tasks.items()):
        table = candidates(name, number, skill, seed, items)
        table = table.filter(table["gold"]) if task.kind == "gold" else table
        tables.append(table.add_column(0, "task", pa.array([name] * table.num_rows)))
        entries[name] = {
            **summarize_questions(measure_questions(table, task.kind), "raw"),
            "data": name,
            "data_checksum": {"examples.jsonl": name},
            "group": task.group,
        }
    write_parquet(folder / "tier3_cf_candidates.parquet", pa.concat_tables(tables))
    overall = {
        key: float(np.mean([entry[key] for entry in entries.values() if key in entry]))
        for key in ("accuracy", "centered", "greedy", *MEASURES)
        if any(key in entry for entry in entries.values())
    }
    write_json(folder / "tier3_cf.json", {**about, "overall": overall, "tasks": entries})


def _tier4(folder: Path, common: dict[str, Any], skill: float, seed: int, prompts: int) -> None:
    shared, own = np.random.default_rng(99), np.random.default_rng([seed, 99])
    chance = shared.random(prompts) + own.normal(0, 0.05, prompts) + skill
    rows = [
        {
            "id": f"p{i}",
            "category": "lists" if i % 2 else "concise",
            "headline": True,
            "prompt": "Say it.",
            "response": "It.",
            "stop_reason": "eos" if i % 7 else "length",
            "prompt_tokens": 3,
            "response_tokens": 2,
            "checks": {
                "complies": {"kind": "instruction", "passed": bool(chance[i] > 0.5)},
                "word_count-2": {"kind": "format", "passed": bool(chance[i] > 0.4)},
            },
        }
        for i in range(prompts)
    ]
    content = {**common, **summarize(rows)}
    write_json(folder / "tier4_sft_native.json", {**content, "data_checksum": {"p": "1"}})
    answers = ({k: v for k, v in row.items() if k not in ("headline", "checks")} for row in rows)
    write_jsonl(folder / "tier4_sft_native_generations.jsonl", answers)


def write_stage_of(plan: StagePlan, steps: Mapping[int, dict[str, Any]], **bridge: Any) -> None:
    """Writes the bridge and steps, of these settings, with deltas and recommendation."""
    write_side(plan.bridge_folder, plan, step=100, **bridge)
    for step, own in steps.items():
        write_side(plan.step_folder(step), plan, step=step, **{"seed": step, **own})
    write_stage(plan, {step: write_deltas(plan, step) for step in steps})


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@contextmanager
def edited(path: Path) -> Iterator[dict[str, Any]]:
    """The content of a file, which is written as it is left."""
    content = read(path)
    yield content
    path.write_text(json.dumps(content))


def edit_json(path: Path, **changes: Any) -> None:
    with edited(path) as content:
        content |= changes

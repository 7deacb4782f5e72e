"""Items that turned right or wrong against the bridge, with what is needed to read them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.bridge.outcomes import item_credits, prompt_outcome
from evaluation.bridge.results import Results
from evaluation.reporting.stage import StageResults
from evaluation.scoring.accuracy import candidate_scores, group_items
from evaluation.settings.plan import StagePlan

MOST = 12
"""Flips shown of a task in each direction, the ones that moved most."""

LONGEST = 4000
"""Characters of a text that are shown."""

Flip = dict[str, Any]


def stage_flips(found: StageResults, steps: Sequence[int]) -> list[Flip]:
    """Flips of some steps; none where a side has no per-item scores."""
    if found.bridge is None:
        return []
    flips = []
    bridge = found.bridge.tables()
    for step in steps:
        if step in found.steps:
            ours = found.steps[step].tables()
            own = [*_task_flips(found.plan, ours, bridge), *_probe_flips(ours, bridge)]
            flips += [{"step": step, **flip} for flip in own]
    return flips


def _task_flips(plan: StagePlan, ours: Results, bridge: Results) -> list[Flip]:
    flips = []
    for name, mine in ours.tasks.items():
        other = bridge.tasks.get(name)
        if other is None or mine.candidates is None or other.candidates is None:
            continue
        texts = _examples(plan.task_folder(name) / "examples.jsonl")
        flips += _flips_of(name, mine.candidates, other.candidates, mine.primary or "raw", texts)
    return flips


def _flips_of(
    task: str, mine: pa.Table, other: pa.Table, metric: str, texts: dict[str, Any]
) -> list[Flip]:
    left, right = item_credits(mine), item_credits(other)
    if left.ids != right.ids:
        return []
    change = left.credit[metric] - right.credit[metric]
    groups, gold = group_items(mine), mine["gold"].to_numpy(zero_copy_only=False)
    scores = candidate_scores(mine)[metric], candidate_scores(other)[metric]
    moved = np.abs(scores[0] - scores[1])[gold]  # one gold candidate an item
    flips = []
    for is_gain in (True, False):
        chosen = np.flatnonzero(change > 0 if is_gain else change < 0)
        for i in chosen[np.argsort(-moved[chosen], kind="stable")][:MOST]:
            rows = slice(groups.starts[i], groups.starts[i] + groups.sizes[i])
            flips.append(
                {
                    "task": task,
                    "id": left.ids[i],
                    "gained": is_gain,
                    **_shown(texts.get(left.ids[i]), gold[rows], scores[0][rows], scores[1][rows]),
                }
            )
    return flips


def _shown(item: Any, gold: Any, ours: Any, theirs: Any) -> dict[str, Any]:
    """The question, and each candidate with both sides' score as they are ranked."""
    contexts = [] if item is None else list(dict.fromkeys(c["text"] for c in item["contexts"]))
    candidates = []
    for i in range(len(gold)):
        choosers = [
            name
            for name, side in (("this step", ours), ("bridge", theirs))
            if side[i] == side.max()
        ]
        candidates.append(
            {
                "text": f"candidate {i}" if item is None else item["candidates"][i]["text"].strip(),
                "gold": bool(gold[i]),
                "ours": float(ours[i]),
                "theirs": float(theirs[i]),
                "chosen": " and ".join(choosers),
            }
        )
    text = "\n—\n".join(contexts) if item else "(the question is no longer in the cache)"
    return {"text": text[-LONGEST:], "candidates": candidates}


def _examples(path: Path) -> dict[str, Any]:
    """The task's questions by id; empty where the cache was cleared."""
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["id"]: row for row in rows}


def _probe_flips(ours: Results, bridge: Results) -> list[Flip]:
    if ours.probes is None or bridge.probes is None:
        return []
    rate = "all_checks_pass_rate"
    said = _generations(ours.folder), _generations(bridge.folder)
    others = {prompt["id"]: prompt for prompt in bridge.probes.prompts}
    flips = []
    for prompt in ours.probes.prompts:
        other = others.get(prompt["id"])
        if other is None:
            continue
        passed = [
            prompt_outcome(one, rate, side.headers["tier4"].path)
            for one, side in ((prompt, ours), (other, bridge))
        ]
        if passed[0] == passed[1]:
            continue
        asked = said[0].get(prompt["id"], {}).get("prompt", "")
        flips.append(
            {
                "task": f"probes: {prompt['category']}",
                "id": prompt["id"],
                "gained": bool(passed[0]),
                "text": asked[-LONGEST:],
                "sides": [
                    _side("this step", prompt, said[0]),
                    _side("bridge", other, said[1]),
                ],
            }
        )
    return flips


def _side(name: str, prompt: Any, said: dict[str, Any]) -> list[str]:
    response = said.get(prompt["id"], {}).get("response", "(not stored)")
    checks = [f"{'✓' if passed else '✗'} {check}" for check, passed in prompt["checks"].items()]
    return [name, response[:LONGEST], f"{', '.join(checks)}; ended by {prompt['stop_reason']}"]


def _generations(folder: Path) -> dict[str, Any]:
    path = folder / "tier4_sft_native_generations.jsonl"
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["id"]: row for row in rows}

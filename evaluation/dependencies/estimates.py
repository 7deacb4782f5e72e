"""Estimate how long generating a stage's completions will take, before it begins."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.checkpoints.subjects import Subject
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import settled_task
from evaluation.settings.tiers import TIERS
from evaluation.wording import time_in_words


def estimate_answers(
    plan: StagePlan,
    to_score: Sequence[Subject],
    meta_of: Callable[[Path], Mapping[str, Any] | None],
    imported_of: Callable[[Subject], Collection[str]],
) -> str:
    """Return one line on what a stage's checkpoints have to generate, and the time by the last speed.

    Args:
        to_score: Checkpoints that have to be scored; those of other stages are not counted.
        meta_of: Returns the meta.json of a cache entry's folder; None if there is none yet.
        imported_of: Returns a checkpoint's tasks whose completions were imported.
    """
    work = _work_by_task(plan, meta_of)
    if work is None:
        return f"{plan.name}: not prefilled"
    subjects = [subject for subject in to_score if subject.plan.name == plan.name]
    checkpoints = Counter(_work_without(work, imported_of(subject)) for subject in subjects)
    del checkpoints[0, 0]
    if not checkpoints:
        return f"{plan.name}: nothing is to be generated"
    tokens = sum(count * most for (_, most), count in checkpoints.items())
    parts = [
        f"{_counted(count, 'checkpoint')} × {_counted(completions, 'completion')}"
        for (completions, _), count in checkpoints.items()
    ]
    text = f"{' and '.join(parts)} ({tokens:,} tokens at most in total)"
    speed = _last_speed(plan)
    if speed is None:
        return f"{plan.name}: {text}"
    seconds = tokens / speed
    bound = f"at most {time_in_words(seconds)}" if seconds >= 60 else "under a minute"
    return f"{plan.name}: {bound} at the last {speed:,.0f} tokens/s, {text}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _work_without(work: Mapping[str, tuple[int, int]], tasks: Collection[str]) -> tuple[int, int]:
    """Return completions and maximum tokens of all tasks but some."""
    left = [amounts for name, amounts in work.items() if name not in tasks]
    return sum(completions for completions, _ in left), sum(tokens for _, tokens in left)


def _work_by_task(
    plan: StagePlan, meta_of: Callable[[Path], Mapping[str, Any] | None]
) -> dict[str, tuple[int, int]] | None:
    """Return a checkpoint's completions and their maximum tokens; None if a task is not prefilled."""
    work = {}
    for name, task in plan.suite.generation_tasks.items():
        meta = meta_of(plan.cache_folder("tier5", name))
        if meta is None:
            return None
        settled = settled_task(task, meta)
        count = int(meta["items"]["used"]) * settled.sampling.n
        work[name] = count, count * settled.max_new_tokens
    return work


def _last_speed(plan: StagePlan) -> float | None:
    """Return the tokens per second of the stage's last scored checkpoint; None without one."""
    name = TIERS["tier5"].summary_file
    files = [*plan.results.glob(f"by_checkpoint/*/{name}"), *plan.results.glob(f"bridge/{name}")]
    for path in sorted(files, key=lambda file: -file.stat().st_mtime):
        try:
            speed = json.loads(path.read_text(encoding="utf-8")).get("tokens_per_second")
        except (OSError, ValueError, AttributeError):  # a damaged file has no speed
            continue
        if isinstance(speed, int | float) and speed > 0:
            return float(speed)
    return None

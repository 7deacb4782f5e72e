"""Logs of Inspect (inspect.aisi.org.uk) of questions and answers, for `inspect view`.

A log is a task of one checkpoint, in Inspect's JSON, version 2. It is written without Inspect, which need
not be installed here: `pip install inspect-ai`, anywhere, has the viewer.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluation.checkpoints.subjects import steps_so_far
from evaluation.errors import ResultsError
from evaluation.files import fingerprint, write_text
from evaluation.reporting.flips import WITH_ANSWERS
from evaluation.reporting.samples import ItemAnswer, credits_of, samples_of
from evaluation.results.read import read_tier
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import results_folder
from evaluation.settings.tiers import TIERS, TierName

Log = dict[str, Any]

_NAMED = "2000-01-01T00-00-00"
"""A time, always the same, so that a second export replaces the first: Inspect lists no other names."""


def write_logs(plan: StagePlan, output: Path, steps: Sequence[int] | None = None) -> Iterator[Path]:
    """Write a log for each task of each checkpoint, the bridge's answers in the metadata of questions.

    Args:
        steps: Only these; all that have results if None.

    Raises:
        ResultsError: A step has no results, they are damaged, or the texts that were scored are not
            cached any more.
    """
    known = steps_so_far(plan) if steps is None else steps
    sides = [(results_folder(step), plan.step_folder(step)) for step in known]
    if plan.stage.bridge is not None:
        sides.append(("bridge", plan.bridge_folder))
    for name, folder in sides:
        if steps is not None and not folder.is_dir():
            raise ResultsError(f"{folder}: no such results; score the step, or leave it out")
        for tier in WITH_ANSWERS:
            for item in credits_of(folder, tier):
                path = output / plan.name / name / _file(tier, item)
                before = {}
                if name != "bridge" and item in credits_of(plan.bridge_folder, tier):
                    answers = samples_of(plan, plan.bridge_folder, tier, item)
                    before = {(answer.id, answer.number): answer for answer in answers}
                answers = samples_of(plan, folder, tier, item)
                samples = [
                    _sample(answer, before.get((answer.id, answer.number))) for answer in answers
                ]
                log = _log(f"{plan.name}/{name}", folder, tier, item, samples)
                write_text(path, json.dumps(log))
                yield path


def _file(tier: TierName, item: str) -> str:
    """Return a log's file: a time, the task without underscores, and what no other task has."""
    return f"{_NAMED}_{tier}-{item.replace('_', '-')}_{fingerprint(item)[:8]}.json"


def _log(model: str, folder: Path, tier: TierName, item: str, samples: list[Log]) -> Log:
    results = read_tier(folder, tier)
    header = results.file
    made = datetime.fromtimestamp(results.path.stat().st_mtime, UTC).isoformat()
    metric, scored = TIERS[tier].headline, [s["scores"] for s in samples if s["scores"]]
    judged = [scores["credit"]["value"] for scores in scored]
    mean = {"name": metric, "value": sum(judged) / len(judged) if judged else None}
    score = {"name": "credit", "scorer": metric, "metrics": {metric: mean}}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": made,
            "task": item,
            "task_id": f"{model}/{tier}/{item}",
            "model": model,
            "dataset": {"name": item, "samples": len(samples)},
            "config": {},
            "packages": {name: of[0] for name, of in header.packages.items() if of},
            "metadata": {"checkpoint": header.checkpoint, "protocol": header.protocol},
        },
        "plan": {},  # `inspect view bundle` needs it and `stats`
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples),
            "scores": [score] if judged else [],
        },
        "stats": {"started_at": made, "completed_at": made},
        "samples": samples,
    }


def _sample(answer: ItemAnswer, before: ItemAnswer | None) -> Log:
    scores = {choice.text: choice.logprob for choice in answer.choices}
    about: Log = {"log-probabilities": scores} if scores else {}
    if before is not None:
        about["bridge"] = {"answer": before.answer, "credit": before.credit}
        if before.choices:
            about["bridge"]["log-probabilities"] = {c.text: c.logprob for c in before.choices}
    message = {"role": "assistant", "content": answer.answer, "source": "generate"}
    score = {"value": answer.credit, "answer": answer.answer}
    score |= {"explanation": "; ".join(answer.reasons)} if answer.reasons else {}
    reason = {"max_tokens": "max_tokens", "length": "max_tokens"}.get(answer.stop, "stop")
    return {
        "id": answer.id,
        "epoch": answer.number + 1,
        "input": answer.prompt,
        "choices": [choice.text for choice in answer.choices] or None,
        "target": answer.target,
        "messages": [{"role": "user", "content": answer.prompt}, message],
        "output": {
            "choices": [{"message": message, "stop_reason": reason}],
            "completion": answer.answer,
        },
        "scores": None if answer.credit is None else {"credit": score},
        "metadata": about,
    }

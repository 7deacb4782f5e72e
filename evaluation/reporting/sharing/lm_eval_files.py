"""lm-evaluation-harness' files: `results_<time>.json`, and `samples_<task>_<time>.jsonl` for each task.

Scripts of the field read these. Names of metrics are the harness' own where it has the same metric;
`config.model` says that another library computed them.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluation.files import write_json, write_jsonl
from evaluation.reporting.sharing.every_eval_ever import LIBRARY
from evaluation.reporting.sharing.samples import Sample, has_samples, samples_of
from evaluation.reporting.sharing.shared_results import SharedCheckpoint, SharedItem, accuracy_names
from evaluation.results.kinds import Item
from evaluation.settings.tiers import Tier
from evaluation.version import __version__

ACCURACIES: Mapping[str, str] = {
    "raw": "acc",
    "per_char": "acc_norm",
    "per_byte": "acc_bytes",
    "per_token": "acc_per_token",
    "pmi": "acc_mutual_info",
}
"""The harness' names of accuracies; its `acc_norm` divides by characters."""


def write_lm_eval_files(
    checkpoint: SharedCheckpoint, output: Path, now: int, developer: str = "local"
) -> Path:
    """Write a checkpoint's results and samples into a folder of its own; return the file of results.

    Args:
        now: Seconds since 1970, which stand in the names of files.
        developer: First part of the model's name; readers expect one.
    """
    folder = output / checkpoint.name
    time = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")
    for item in checkpoint.items:
        if lines := _samples(checkpoint, item):
            write_jsonl(folder / f"samples_{item.label}_{time}.jsonl", lines)
    content = {
        "results": {item.label: _values(item) for item in checkpoint.items},
        "group_subtasks": {item.label: [] for item in checkpoint.items},
        "configs": {item.label: _task(item) for item in checkpoint.items},
        "versions": {item.label: item.tier.file.protocol for item in checkpoint.items},
        "n-shot": {item.label: item.num_fewshot or 0 for item in checkpoint.items},
        "higher_is_better": {
            item.label: {_name(item, v.metric.name): v.metric.higher_is_better for v in item.values}
            for item in checkpoint.items
        },
        "n-samples": {item.label: _counts(item) for item in checkpoint.items},
        "config": _config(checkpoint, developer),
        "git_hash": None,
        "date": float(now),
        "model_source": LIBRARY,
        "model_name": checkpoint.name,
        "model_name_sanitized": checkpoint.name,
        "eval_library_version": __version__,
    }
    path = folder / f"results_{time}.json"
    write_json(path, content)
    return path


def _config(checkpoint: SharedCheckpoint, developer: str) -> dict[str, Any]:
    header = checkpoint.header
    return {
        "model": LIBRARY,
        "model_args": {
            "pretrained": f"{developer}/{checkpoint.name}",
            "checkpoint": header.checkpoint,
        },
        "model_dtype": header.dtype,
        "batch_size": None,
        "device": header.device,
        "bootstrap_iters": 0,
        "gen_kwargs": {},
    }


def _name(item: SharedItem, metric: str) -> str:
    """Return the harness' name of a metric, or ours where it has none of that meaning."""
    return ACCURACIES.get(accuracy_names(item).get(metric, ""), metric)


def _values(item: SharedItem) -> dict[str, Any]:
    """Return values and standard errors."""
    content: dict[str, Any] = {"alias": item.label}
    for value in item.values:
        name = _name(item, value.metric.name)
        content[f"{name},none"] = value.value
        content[f"{name}_stderr,none"] = "N/A" if value.stderr is None else value.stderr
    return content


def _counts(item: SharedItem) -> dict[str, int]:
    used = max((value.n for value in item.values), default=0)
    asked = getattr(item.result.entry, "items", None)
    return {"original": getattr(asked, "asked", None) or used, "effective": used}


def _task(item: SharedItem) -> dict[str, Any]:
    source = item.source
    content: dict[str, Any] = {
        "task": item.label,
        "dataset_path": item.dataset,
        "dataset_name": getattr(source, "config", None),
        "test_split": getattr(source, "split", None),
        "num_fewshot": item.num_fewshot,
        "output_type": "generate_until" if item.decoding else "multiple_choice",
        "metadata": {"version": item.tier.file.protocol, **_engine(item)},
    }
    if decoding := item.decoding:
        drawn = decoding.get("sampling") or {}
        content["generation_kwargs"] = {
            "until": decoding.get("stop") or [],
            "temperature": drawn.get("temperature", 0.0),
            "do_sample": bool(drawn.get("temperature")),
            "max_gen_toks": decoding.get("max_new_tokens"),
        }
    return content


def _engine(item: SharedItem) -> dict[str, str]:
    """Return the engine of a task's completions, as the harness has one model for all tasks of a file."""
    if item.engine is None:
        return {}
    version = item.engine.version
    given = {} if version is None else {"inference_engine_version": version}
    return {"inference_engine": item.engine.name, **given}


def _samples(checkpoint: SharedCheckpoint, item: SharedItem) -> list[dict[str, Any]]:
    if item.tier.tier.kind == "nats":
        return _blocks(item.tier.tier, item.result)
    if not has_samples(item.tier, item.name):
        return []
    by_prompt: dict[str, list[Sample]] = {}
    for sample in samples_of(checkpoint.plan, item.tier, item.name):
        by_prompt.setdefault(sample.id, []).append(sample)
    return [_prompt_line(number, item, same) for number, same in enumerate(by_prompt.values())]


def _blocks(tier: Tier, item: Item) -> list[dict[str, Any]]:
    """Return a line for each block of text, whose tokens stay in the cache."""
    if item.units is None:
        return []
    identity = (metric.name for metric in tier.headline_first if metric.link == "identity")
    ratios = {name: item.measured[name] for name in identity if name in item.measured}
    columns = (item.units.sums[name].tolist() for name in ("nats", "tokens", "bytes"))
    lines = []
    for place, (block, nats, tokens, size) in enumerate(zip(item.units.ids, *columns, strict=True)):
        document = {"block": int(block), "tokens": tokens, "bytes": size}
        scores = {
            name: float(amounts[place] / weights[place])
            for name, (amounts, weights) in ratios.items()
            if weights is not None and weights[place]
        }
        lines.append(_line(int(block), document, "", [["", ""]], [[-nats, False]], scores))
    return lines


def _prompt_line(number: int, item: SharedItem, samples: list[Sample]) -> dict[str, Any]:
    """Return the line of a prompt with all its samples."""
    first = samples[0]
    document = {"id": first.id, "prompt": first.prompt, "choices": list(first.choices)}
    scores = {
        ACCURACIES.get(key, key): math.fsum(known) / len(known)
        for key in first.scores
        if (known := [sample.scores[key] for sample in samples if key in sample.scores])
    }
    if first.choices:
        target = str(first.gold)
        asked: list[list[Any]] = [[first.prompt, choice] for choice in first.choices]
        answers: list[Any] = [*map(list, zip(first.logprobs, first.is_greedy, strict=False))]
        return _line(number, document, target, asked, answers, scores)
    target = "".join(first.references)
    asked = [[first.prompt, {"until": item.decoding.get("stop") or []}]]
    line = _line(number, document, target, asked, [sample.extracted for sample in samples], scores)
    return {**line, "resps": [[text for sample in samples for text in sample.outputs]]}


def _line(
    number: int,
    document: Mapping[str, Any],
    target: str,
    requests: list[list[Any]],
    answers: list[Any],
    scores: Mapping[str, float],
) -> dict[str, Any]:
    """Return a line as the harness writes it: requests by number, and answers as text."""
    arguments = {
        f"gen_args_{i}": {f"arg_{j}": part for j, part in enumerate(request)}
        for i, request in enumerate(requests)
    }
    answers = [[*map(str, answer)] if isinstance(answer, list) else answer for answer in answers]
    prompt = str(requests[0][0])
    return {
        "doc_id": number,
        "doc": document,
        "target": target,
        "arguments": arguments,
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
        "filter": "none",
        "metrics": list(scores),
        "doc_hash": _hash(json.dumps(document, sort_keys=True, ensure_ascii=False)),
        "prompt_hash": _hash(prompt),
        "target_hash": _hash(target),
        **scores,
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()

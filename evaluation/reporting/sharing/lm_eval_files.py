"""lm-evaluation-harness' files: `results_<time>.json`, and `samples_<task>_<time>.jsonl` for each task.

Names of metrics are the harness' own where it has the same; `config.model` says who computed them.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from evaluation.files import write_json, write_jsonl
from evaluation.reporting.sharing.curves import Row, Steps, values_of_steps
from evaluation.reporting.viewer.samples import Sample, has_samples, samples_of
from evaluation.results.kinds import Item
from evaluation.results.read import TierResults, read_folder
from evaluation.settings.plan import StagePlan

ACCURACIES: Mapping[str, str] = {
    "raw": "acc",
    "per_char": "acc_norm",
    "per_byte": "acc_bytes",
    "per_token": "acc_per_token",
    "pmi": "acc_mutual_info",
}
"""The harness' names of accuracies; its `acc_norm` divides by characters."""


def write_lm_eval_files(
    plans: Sequence[StagePlan], steps: Steps, output: Path, developer: str
) -> Iterator[Path]:
    """Write results and samples of some steps, or all, each into a folder; yield the files of results.

    Raises:
        EvaluationError: `values_of_steps` raises it, results are damaged, or texts are no longer there.
    """
    values = values_of_steps(plans, steps)
    for _, group in groupby(values, key=lambda one: (one[0].name, one[1]["step"])):
        (plan, first), *others = group
        yield _write(plan, [first, *(row for _, row in others)], output, developer)


def _write(plan: StagePlan, rows: Sequence[Row], output: Path, developer: str) -> Path:
    now, step = time.time(), rows[0]["step"]
    at = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")
    model = f"{Path(plan.config.results).resolve().name}-{plan.name}-{step}"
    results = read_folder(plan.step_folder(step))
    found = [(tier, name) for tier in results.tiers.values() for name in tier.items]
    count = Counter(name for _, name in found)
    parts: dict[str, Any] = {}
    for tier, name in found:
        label = name if count[name] == 1 else f"{tier.tier.name}_{name}"
        own = [row for row in rows if (row["tier"], row["item"]) == (tier.tier.name, name)]
        for part, content in _parts(plan, tier, name, own).items():
            parts.setdefault(part, {})[label] = content
        if has_samples(tier, name):
            by_id = groupby(samples_of(plan, tier, name), key=lambda sample: sample.id)
            lines = [_line(number, list(same)) for number, (_, same) in enumerate(by_id)]
            write_jsonl(output / model / f"samples_{label}_{at}.jsonl", lines)
    weights = {"pretrained": f"{developer}/{model}", "checkpoint": results.header.checkpoint}
    run = {"model": "staged-evaluation", "model_args": weights, "model_dtype": results.header.dtype}
    parts |= {"config": run, "date": now, "model_name": model, "model_name_sanitized": model}
    path = output / model / f"results_{at}.json"
    write_json(path, parts)
    return path


def _parts(plan: StagePlan, results: TierResults, name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return what the file has on an item, by the key under which all items stand."""
    tier, item, version = results.tier, results.items[name], results.file.protocol
    source = getattr(plan.suite, tier.section).get(name)
    how = getattr(item.entry, "decoding", {})
    drawn = {"until": how.get("stop"), "max_gen_toks": how.get("max_new_tokens"), "temperature": 0}
    config = {
        "task": name,
        "dataset_path": getattr(source, "dataset", None),
        "dataset_name": getattr(source, "config", None),
        "test_split": getattr(source, "split", None),
        "num_fewshot": getattr(source, "num_fewshot", None),
        "output_type": "generate_until" if how else "multiple_choice",
        "generation_kwargs": {**drawn, **(how.get("sampling") or {})} if how else {},
        "metadata": {"version": version, "inference_engine": how.get("engine")},
    }
    called = {row["metric"]: _called(results, item, row["metric"]) for row in rows}
    values = {f"{called[row['metric']]},none": row["value"] for row in rows}
    errors = {f"{called[row['metric']]}_stderr,none": row["stderr"] for row in rows}
    return {
        "results": {**values, **{k: "N/A" if v is None else v for k, v in errors.items()}},
        "configs": config,
        "versions": version,
        "n-shot": config["num_fewshot"] or 0,
        "higher_is_better": {c: tier.metric(m).higher_is_better for m, c in called.items()},
        "n-samples": {"effective": max((row["n"] for row in rows), default=0)},
    }


def _called(results: TierResults, item: Item, metric: str) -> str:
    """Return the harness' name of a metric, or ours where it has none of that meaning."""
    head = results.tier.headline
    by = getattr(item.entry, "primary", None) if metric == head else metric.removeprefix(f"{head}_")
    return ACCURACIES.get(by or "raw", metric) if results.tier.section == "tasks" else metric


def _line(number: int, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the line of a question or prompt, with requests by number and answers as text."""
    first = samples[0]
    scores = {
        ACCURACIES.get(key, key): math.fsum(known) / len(known)
        for key in first.scores
        if (known := [sample.scores[key] for sample in samples if key in sample.scores])
    }
    ranked = zip(map(str, first.logprobs), map(str, first.is_greedy), strict=True)
    answers = [*map(list, ranked)] if first.choices else [sample.extracted for sample in samples]
    written = [text for sample in samples for text in sample.outputs]
    asked: Sequence[Any] = first.choices or ({},)
    return {
        "doc_id": number,
        "doc": {"id": first.id, "prompt": first.prompt, "choices": list(first.choices)},
        "target": str(first.gold) if first.choices else "".join(first.references),
        "arguments": {
            f"gen_args_{i}": {"arg_0": first.prompt, "arg_1": one} for i, one in enumerate(asked)
        },
        "resps": [[answer] for answer in answers] if first.choices else [written],
        "filtered_resps": answers,
        "metrics": list(scores),
        **scores,
    }

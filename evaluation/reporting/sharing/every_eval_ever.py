"""Every Eval Ever (schema 0.3.0): one JSON file for each item of a checkpoint, one line for each sample.

The layout is `data/<evaluation>/<developer>/<model>/<uuid>.json` with the samples beside it. Its own
validator judges what is written here (tests/reporting/test_sharing.py).
"""

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.files import write_json, write_jsonl
from evaluation.reporting.sharing.samples import Sample, has_samples, samples_of
from evaluation.reporting.sharing.shared_results import SharedCheckpoint, SharedItem, SharedValue
from evaluation.version import __version__

VERSION = "0.3.0"
LIBRARY = "staged-evaluation"


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """Who evaluated: `organization` evaluates its own checkpoints. `now` is in seconds since 1970."""

    organization: str
    now: int


def write_every_eval_ever(
    checkpoint: SharedCheckpoint, output: Path, publisher: Publisher
) -> list[Path]:
    """Write a checkpoint's items into `data/` of a folder; return the aggregate files."""
    return [_write_item(checkpoint, item, output, publisher) for item in checkpoint.items]


def _write_item(
    checkpoint: SharedCheckpoint, item: SharedItem, output: Path, publisher: Publisher
) -> Path:
    developer = _slug(publisher.organization)
    model = f"{developer}/{checkpoint.name}"
    name = f"{item.tier.tier.name}_{item.name}"
    identity = f"{name}/{model}/{publisher.now}"
    folder = Path("data") / _slug(name) / developer / checkpoint.name
    # The same checkpoint, item and time give the same name: an export can be repeated.
    seed = f"{identity} {checkpoint.header.checkpoint_identity}"
    digest = hashlib.sha256(seed.encode()).digest()
    stem = str(uuid.UUID(bytes=digest[:16], version=4))
    aggregate = {
        "schema_version": VERSION,
        "evaluation_id": identity,
        "retrieved_timestamp": str(publisher.now),
        "source_metadata": {
            "source_name": LIBRARY,
            "source_type": "evaluation_run",
            "source_organization_name": publisher.organization,
            "evaluator_relationship": "first_party",
        },
        "eval_library": {
            "name": LIBRARY,
            "version": __version__,
            "additional_details": {"protocol": item.tier.file.protocol},
        },
        "model_info": _model(checkpoint, item, model),
        "evaluation_results": [_result(item, name, value) for value in item.values],
    }
    if has_samples(item.tier, item.name):
        samples = list(samples_of(checkpoint.plan, item.tier, item.name))
        judged = [sample for sample in samples if sample.score is not None]
        path = folder / f"{stem}_samples.jsonl"
        lines = list(_sample_lines(judged, item, identity, model, name))
        write_jsonl(output / path, lines)
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": str(path),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256((output / path).read_bytes()).hexdigest(),
            "total_rows": len(lines),
            "additional_details": {"samples_without_verdict": str(len(samples) - len(judged))},
        }
    write_json(output / folder / f"{stem}.json", aggregate)
    return output / folder / f"{stem}.json"


def _model(checkpoint: SharedCheckpoint, item: SharedItem, model: str) -> dict[str, Any]:
    header = checkpoint.header
    imported = item.engine and item.engine.imported
    details = {
        "deployment_type": "self_deployed",
        "model_availability": "unknown",
        "checkpoint_identity": header.checkpoint_identity,
        "stage": header.stage,
        "step": header.step,
        "merge": header.merge,
        "dtype": header.dtype
        if imported is None
        else None,  # that of other programs is not recorded
        "completions_imported_from": imported,
        "training_tokens": header.consumed_tokens,
        "tokenizer": header.tokenizer.name,
    }
    return {
        "name": checkpoint.name,
        "id": model,
        "developer": model.split("/")[0],
        **_engine(item),
        "additional_details": {k: str(v) for k, v in details.items() if v is not None},
    }


def _engine(item: SharedItem) -> dict[str, Any]:
    """Return what computed an item's scores or completions; nothing for an external program."""
    if item.tier.file.is_external:
        return {}
    name, version = (
        (item.engine.name, item.engine.version) if item.engine else (LIBRARY, __version__)
    )
    return {"inference_engine": {"name": name, **({"version": version} if version else {})}}


def _result(item: SharedItem, name: str, value: SharedValue) -> dict[str, Any]:
    return {
        "evaluation_result_id": value.metric.name,
        "evaluation_name": name,
        "source_data": _source(item),
        "metric_config": _metric(value),
        "score_details": _score(value),
        **_generation(item),
    }


def _metric(value: SharedValue) -> dict[str, Any]:
    metric = value.metric
    least, most = metric.bounds
    return {
        "metric_id": metric.name,
        "metric_name": metric.words,
        "metric_kind": metric.kind or metric.key,
        "metric_unit": "proportion" if metric.unit == "fraction" else metric.unit,
        "lower_is_better": not metric.higher_is_better,
        "score_type": "continuous",
        "min_score": "-Infinity" if least is None else least,
        "max_score": "Infinity" if most is None else most,
    }


def _score(value: SharedValue) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": value.n}
    if value.low is not None and value.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": value.low,
            "upper": value.high,
            "confidence_level": 0.95,
            "method": "over items; clusters, strata and serial dependence as docs/verdicts.md says",
        }
    return {"score": value.value, "uncertainty": uncertainty}


def _source(item: SharedItem) -> dict[str, Any]:
    if item.dataset is None:
        return {"dataset_name": item.name, "source_type": "other"}
    source: dict[str, Any] = {
        "dataset_name": item.dataset,
        "source_type": "hf_dataset",
        "hf_repo": item.dataset,
        "hf_split": item.source.split,
    }
    details = {"config": item.source.config, "revision": item.source.revision}
    return source | {"additional_details": {k: v for k, v in details.items() if v is not None}}


def _generation(item: SharedItem) -> dict[str, Any]:
    details = {} if item.num_fewshot is None else {"num_fewshot": str(item.num_fewshot)}
    arguments: dict[str, Any] = {}
    if decoding := item.decoding:
        drawn = decoding.get("sampling") or {}
        arguments = {key: drawn[key] for key in ("temperature", "top_p", "top_k") if key in drawn}
        if decoding.get("max_new_tokens"):
            arguments["max_tokens"] = decoding["max_new_tokens"]
        details["stop"] = json.dumps(decoding.get("stop") or [], ensure_ascii=False)
    if not (details or arguments):
        return {}
    return {"generation_config": {"generation_args": arguments, "additional_details": details}}


def _sample_lines(
    samples: Iterable[Sample], item: SharedItem, identity: str, model: str, name: str
) -> Iterator[Mapping[str, Any]]:
    head = item.tier.tier.headline
    for sample in samples:
        references = list(sample.references)
        content = sample.prompt + "".join(references)
        yield {
            "schema_version": VERSION,
            "evaluation_id": identity,
            "model_id": model,
            "evaluation_name": name,
            "evaluation_result_id": head if item.values else None,
            "sample_id": sample.id,
            "sample_hash": hashlib.sha256(content.encode(errors="replace")).hexdigest(),
            "interaction_type": "single_turn",
            "input": {
                "raw": sample.prompt,
                "formatted": sample.prompt,
                "reference": references,
                **({"choices": list(sample.choices)} if sample.choices else {}),
            },
            "output": {"raw": list(sample.outputs)},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": sample.extracted,
                    "extraction_method": sample.method,
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": sample.score, "is_correct": sample.score == 1},
            **_tokens(sample),
            "metadata": {k: str(v) for k, v in (sample.about or {}).items()},
        }


def _tokens(sample: Sample) -> dict[str, Any]:
    if sample.tokens is None:
        return {}
    read, written = sample.tokens
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return {"token_usage": usage}


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text).strip(".-") or "unnamed"

"""The tier files of one checkpoint, in `by_checkpoint/step_<STEP>/` or `bridge/`.

The per-item tables are written before the JSON that summarizes them, so that a JSON's existence
proves that the whole tier is there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from evaluation.files import write_json, write_jsonl, write_parquet
from evaluation.prefill.caches import SliceCache, TaskCache
from evaluation.prefill.probes import ProbeCache
from evaluation.scoring.probes import generations
from evaluation.scoring.session import Session
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS
from evaluation.store import StoredScore


@dataclass(frozen=True)
class Subject:
    """A checkpoint to score: where it lies, and where its results go."""

    checkpoint: Path
    step: int | None
    role: Literal["step", "bridge"]
    folder: Path


def bridge_subject(plan: StagePlan, checkpoint: Path, step: int | None) -> Subject:
    return Subject(checkpoint, step, "bridge", plan.bridge_folder)


def step_subject(plan: StagePlan, step: int) -> Subject:
    return Subject(plan.checkpoint(step), step, "step", plan.step_folder(step))


def _packages(scores: Mapping[str, StoredScore]) -> dict[str, list[str]]:
    """The versions that the scores were computed with, which may be older than today's."""
    versions: dict[str, set[str]] = {}
    for score in scores.values():
        for package, version in score.summary["packages"].items():
            versions.setdefault(package, set()).add(version)
    return {package: sorted(found) for package, found in versions.items()}


def _without_packages(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in summary.items() if key != "packages"}


def _add_up(counts: list[Mapping[str, Any]]) -> dict[str, Any]:
    left_out: dict[str, int] = {}
    for count in counts:
        for reason, number in count["left_out"].items():
            left_out[reason] = left_out.get(reason, 0) + number
    return {
        "asked": sum(count["asked"] for count in counts),
        "used": sum(count["used"] for count in counts),
        "left_out": left_out,
    }


def _stack(scores: Mapping[str, StoredScore], column: str) -> pa.Table:
    """All items' tables under each other, the item's name as the first column."""
    tables = [
        score.table.add_column(0, column, pa.array([name] * score.table.num_rows, pa.string()))
        for name, score in scores.items()
    ]
    return pa.concat_tables(tables)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _origin(meta: Mapping[str, Any], group: str | None) -> dict[str, Any]:
    return {
        "data": meta["definition"],
        "data_checksum": meta["checksum"],
        "group": group,
        "items": meta["items"],
    }


@dataclass(frozen=True)
class TierFiles:
    """Writes the results of one subject."""

    plan: StagePlan
    subject: Subject
    session: Session
    tokenizer: Mapping[str, Any]

    def write_tier2(
        self,
        caches: Mapping[str, SliceCache],
        scores: Mapping[str, StoredScore],
    ) -> None:
        """Writes `tier2_ppl_blocks.parquet` and `tier2_ppl.json`.

        The overall perplexity is exp of the unweighted mean of the slices' nats per token.
        """
        slices = {
            name: {
                **_without_packages(score.summary),
                **_origin(caches[name].meta, self.plan.suite.slices[name].group),
            }
            for name, score in scores.items()
        }
        nats = _mean([entry["nats_per_token"] for entry in slices.values()])
        per_byte = [entry["bits_per_byte"] for entry in slices.values()]
        counts = _add_up([entry["items"] for entry in slices.values()])
        content = {
            **self._header(TIERS["tier2"].protocol, scores, counts),
            "attention": self.plan.suite.attention,
            "overall": {
                "ppl": math.exp(nats),
                "nats_per_token": nats,
                "bits_per_byte": None if None in per_byte else _mean(per_byte),
            },
            "slices": slices,
        }
        write_parquet(self.subject.folder / TIERS["tier2"].items_file, _stack(scores, "slice"))
        write_json(self.subject.folder / TIERS["tier2"].summary_file, content)

    def write_tier3(
        self,
        caches: Mapping[str, TaskCache],
        scores: Mapping[str, StoredScore],
    ) -> None:
        """Writes `tier3_cf_candidates.parquet` and `tier3_cf.json`.

        The overall accuracy is the unweighted mean of the tasks' primary accuracies.
        """
        tasks = {
            name: {
                **_without_packages(score.summary),
                **_origin(caches[name].meta, self.plan.suite.tasks[name].group),
                "task": caches[name].meta["task"],
            }
            for name, score in scores.items()
        }
        counts = _add_up([entry["items"] for entry in tasks.values()])
        content = {
            **self._header(TIERS["tier3"].protocol, scores, counts),
            "overall": {
                "accuracy": _mean([entry["accuracy"] for entry in tasks.values()]),
                "centered": _mean([entry["centered"] for entry in tasks.values()]),
            },
            "tasks": tasks,
        }
        write_parquet(self.subject.folder / TIERS["tier3"].items_file, _stack(scores, "task"))
        write_json(self.subject.folder / TIERS["tier3"].summary_file, content)

    def write_tier4(
        self,
        cache: ProbeCache,
        score: StoredScore,
    ) -> None:
        """Writes `tier4_sft_native_generations.jsonl` and `tier4_sft_native.json`."""
        scores = {"sft_native": score}
        content = {
            **self._header(TIERS["tier4"].protocol, scores, cache.meta["items"]),
            **{key: score.summary[key] for key in ("summary", "by_category", "prompts")},
            "chat_template": cache.meta["chat_template"],
            "stop": cache.meta["stop"],
            "data": cache.meta["definition"],
            "data_checksum": cache.meta["checksum"],
        }
        write_jsonl(self.subject.folder / TIERS["tier4"].items_file, generations(score))
        write_json(self.subject.folder / TIERS["tier4"].summary_file, content)

    def _header(
        self,
        version: str,
        scores: Mapping[str, StoredScore],
        items: Mapping[str, Any],
    ) -> dict[str, Any]:
        seconds = sum(score.summary["seconds"] for score in scores.values())
        tokens = sum(score.summary["tokens_processed"] for score in scores.values())
        return {
            "stage": self.plan.name,
            "step": self.subject.step,
            "role": self.subject.role,
            "checkpoint": str(self.session.checkpoint.path),
            "checkpoint_identity": self.session.checkpoint.identity,
            "tokenizer": {
                key: self.tokenizer[key] for key in ("name", "fingerprint", "prepend_bos")
            },
            "sequence_length": self.plan.sequence_length,
            "protocol": version,
            "packages": _packages(scores),
            "device": self.session.numerics.device,
            "dtype": self.session.numerics.dtype_name,
            "seconds": round(seconds, 3),
            "tokens_per_second": round(tokens / seconds, 1) if seconds else None,
            "items": items,
        }

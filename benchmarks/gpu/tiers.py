"""Tier2 and Tier3 through the engine, as a job runs them, and beside the plain loop."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

from benchmarks.gpu.data import Slice, Task, count_tokens
from benchmarks.gpu.loop import BATCH, Loop
from benchmarks.gpu.models import Size
from benchmarks.gpu.work import Work, of_blocks, of_requests
from benchmarks.measure import Measured, measure, peak_bytes
from evaluation.scoring.engine.busy import BUSY
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks, score_requests
from evaluation.scoring.engine.window import Score

T = TypeVar("T")


@dataclass
class Figures:
    """What measuring needs, and the engine's scores of samples, for the loop to be compared with."""

    engine: Engine
    size: Size
    peak: float
    """FLOP/s of matrix products of the model's shapes."""
    samples: list[Task]
    scores: dict[str, list[Score]] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        return self.engine.device

    def share(self, work: Work, seconds: float) -> float:
        return work.flops(self.size) / seconds / self.peak


def tier2(figures: Figures, slices: Sequence[Slice], *, documents: bool) -> dict[str, Any]:
    """All slices, one after the other; `documents`: each block's documents apart."""
    engine = figures.engine
    inputs = [(one.tokens, one.starts if documents else None) for one in slices]

    def run() -> list[Any]:
        return [score_blocks(engine, tokens, starts)[0] for tokens, starts in inputs]

    measured, busy = _measured(figures.device, run)
    work = sum((of_blocks(*one) for one in inputs), Work(0, 0, 0))
    return {
        "tokens": work.tokens,
        "seconds": measured.seconds,
        "tokens_per_second": work.tokens / measured.seconds,
        "peak_share": figures.share(work, measured.seconds),
        "peak_memory_gb": peak_bytes(figures.device) / 1e9,
        **busy,
        "nats_per_token": sum(float(nats.sum()) for nats in measured.result) / work.queries,
    }


def tier3(figures: Figures, task: Task, sample: Task) -> dict[str, Any]:
    """A whole task, and a sample of it; keeps the sample's scores."""
    engine = figures.engine
    before = engine.tokens_processed
    whole, busy = _measured(figures.device, partial(score_requests, engine, task.requests))
    memory = peak_bytes(figures.device)
    read = engine.tokens_processed - before
    work = of_requests(task.requests)
    part = measure(figures.device, partial(score_requests, engine, sample.requests))
    figures.scores[task.name] = part.result
    return {
        "questions": task.questions,
        "requests": len(task.requests),
        "seconds": whole.seconds,
        "questions_per_second": task.questions / whole.seconds,
        "tokens_one_by_one": count_tokens(task.requests),
        "tokens_read": read,
        "tokens_distinct": work.tokens,
        "tokens_per_second": read / whole.seconds,
        "peak_share": figures.share(work, whole.seconds),
        "peak_memory_gb": memory / 1e9,
        **busy,
        "sample": {
            "questions": sample.questions,
            "requests": len(sample.requests),
            "engine_seconds": part.seconds,
            "engine_questions_per_second": sample.questions / part.seconds,
        },
    }


def _measured(device: torch.device, run: Callable[[], T]) -> tuple[Measured[T], dict[str, float]]:
    """A run, and on a GPU the share of its wall time inside forward passes."""
    start, before = time.perf_counter(), BUSY.seconds()
    measured = measure(device, run)
    if device.type == "cpu":
        return measured, {}
    busy = BUSY.seconds() - before
    return measured, {"busy": busy / (time.perf_counter() - start)}


def beside_loop(
    loop: Loop, sample: Task, ours: Sequence[Score], measured: dict[str, Any]
) -> dict[str, Any]:
    """The plain loop on the sample that the engine has scored; `measured` is what `tier3` gave."""
    device = loop.model.device
    loop.score(sample.requests[: loop.batch])  # warm
    before = loop.tokens
    run = measure(device, partial(loop.score, sample.requests))
    differences = [
        abs(one.logprob - other.logprob) for one, other in zip(ours, run.result, strict=True)
    ]
    rate = sample.questions / run.seconds
    return {
        "batch": loop.batch,
        "seconds": run.seconds,
        "questions_per_second": rate,
        "tokens_with_padding": loop.tokens - before,
        "peak_memory_gb": peak_bytes(device) / 1e9,
        "times_faster": measured["sample"]["engine_questions_per_second"] / rate,
        "times_faster_whole": measured["questions_per_second"] / rate,
        "largest_difference": max(differences),
        "mean_difference": sum(differences) / len(differences),
        "other_greedy": sum(
            one.is_greedy != other.is_greedy for one, other in zip(ours, run.result, strict=True)
        ),
    }


def new_loop(model: Any) -> Loop:
    return Loop(model, BATCH[model.device.type])

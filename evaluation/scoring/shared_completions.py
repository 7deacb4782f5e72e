"""Share one checkpoint's completions out over processes, each with GPUs of its own.

A sample depends neither on the other samples of its prompt nor on other prompts, so any part of them can
be generated anywhere. This process generates the first part; helpers (`completion_helper`) generate the
others, and store them as this process does.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluation.allowance import THREADS, usable_cores
from evaluation.files import write_json
from evaluation.scoring.answers import GenerationRequest
from evaluation.scoring.lacking import Lacking
from evaluation.scoring.session import Job
from evaluation.scoring.visible_gpus import VISIBLE, in_groups, visible_names
from evaluation.settings.effective import write_effective
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)

_HELPER = "evaluation.scoring.completion_helper"


@contextmanager
def helped(job: Job, lacking: list[Lacking]) -> Iterator[list[Lacking]]:
    """Yield the samples that are left for this process, while helpers generate the others.

    A helper that fails is logged; what it lacks is not stored.
    """
    devices = devices_of(job.plan, job.backend.device)
    mine, *theirs = shares(lacking, len(devices))
    if not theirs:
        yield lacking
        return
    common = {
        "config": str(write_effective(job.plan.config).absolute()),
        "stage": job.plan.name,
        "candidate": job.subject.candidate,
        "vocab_size_needed": job.vocab_size_needed,
    }
    with ExitStack() as stack:
        helpers = [
            stack.enter_context(
                _helper({**common, "items": list(map(_written, part))}, gpu, len(devices))
            )
            for part, gpu in zip(theirs, devices[1:], strict=False)
        ]
        log.info("completions are shared with %d more processes", len(helpers))
        yield mine
        for code in [helper.wait() for helper in helpers]:
            if code:
                log.warning(
                    "a process that shared the completions failed (exit code %d; its messages are "
                    "above); this one generates what it has not stored",
                    code,
                )


def shares(lacking: Sequence[Lacking], parts: int) -> list[list[Lacking]]:
    """Divide samples into parts of about as many each.

    Each item's prompts are dealt out in turn, so that all parts have easy and hard ones. The
    samples of a prompt stay together, but those of the last prompts are divided if these are fewer
    than the parts.
    """
    dealt: list[dict[int, list[GenerationRequest]]] = [{} for _ in range(parts)]
    last: list[tuple[int, GenerationRequest, int]] = []
    for place, item in enumerate(lacking):
        whole = len(item.requests) - len(item.requests) % parts
        for number, request in enumerate(item.requests[:whole]):
            dealt[number % parts].setdefault(place, []).append(request)
        last += [
            (place, request, sample)
            for request in item.requests[whole:]
            for sample in request.samples
        ]
    for number, (place, request, sample) in enumerate(last):
        group = dealt[number * parts // len(last)].setdefault(place, [])
        if group and group[-1].id == request.id:
            group[-1] = replace(group[-1], samples=(*group[-1].samples, sample))
        else:
            group.append(replace(request, samples=(sample,)))
    filled = [
        [replace(lacking[place], requests=requests) for place, requests in part.items()]
        for part in dealt
        if part
    ]
    return filled or [[]]


def devices_of(plan: StagePlan, device: str) -> list[str | None]:
    """Return CUDA_VISIBLE_DEVICES of each sharing process, this one's first; None: as it is."""
    wanted = plan.config.generation.processes
    if device == "cpu" or wanted == 1:
        return [None] * wanted
    names = visible_names()
    groups = in_groups(names, plan.config.scoring.gpus_per_checkpoint)[:wanted]
    if len(groups) < wanted:
        log.warning(
            "generation.processes: %d, but the %d GPUs of this process are enough for %d",
            wanted,
            len(names),
            max(1, len(groups)),
        )
    return [*groups] or [None]


def _written(item: Lacking) -> dict[str, Any]:
    """Return an item as a helper reads it."""
    requests = [
        {
            "id": request.id,
            "tokens": request.tokens,
            "max_new_tokens": request.max_new_tokens,
            "samples": request.samples,
            "sampling": request.sampling.model_dump(),
        }
        for request in item.requests
    ]
    return {
        "name": item.name,
        "item": item.item,
        "key": dict(item.key),
        "eos": sorted(item.stopping.eos_ids),
        "stop": list(item.stopping.strings),
        "requests": requests,
    }


@contextmanager
def _helper(
    request: dict[str, Any], gpu: str | None, processes: int
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process that generates some completions; end it with the block."""
    environment = dict(os.environ)
    if gpu is not None:
        environment[VISIBLE] = gpu
    else:
        threads = max(1, usable_cores() // processes)
        environment.setdefault(THREADS, str(threads))
    with TemporaryDirectory(prefix="shared-", ignore_cleanup_errors=True) as name:
        path = Path(name) / "request.json"
        write_json(path, request)
        process = subprocess.Popen(
            [sys.executable, "-m", _HELPER, str(path), str(os.getpid())],
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

"""python -m benchmarks.gpu.first_use REQUEST: what a fresh process waits for before it is fast.

Run twice with one folder of compiled code, first empty and then full: what a first job pays for
compiling, and what a second one does. Prints one line of JSON, in seconds of wall time.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.utils import counters

from benchmarks.gpu.data import Data, read
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.scoring.engine.compiled import INDUCTOR
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks, score_requests

SECONDS = 1800
"""After which such a process is given up."""


class Failed(Exception):
    """Such a process gave no figures; its text says why."""


def cold_and_warm(request: dict[str, Any], caches: Path) -> dict[str, Any]:
    """`request` is what `main` takes; raises Failed."""
    return {name: _run(request, caches) for name in ("cold", "warm")}


def _run(request: dict[str, Any], caches: Path) -> dict[str, Any]:
    folders = {
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
    }
    command = [sys.executable, "-m", __name__, json.dumps(request)]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **folders},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"it did not end within {SECONDS} s") from None
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1][:300])
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Loads a checkpoint and scores a little twice: the difference is what compiling took."""
    request = json.loads(sys.argv[1])
    device, rows, seconds = request["device"], request["row_tokens"], {}
    torch.set_num_threads(request["threads"])
    data = read(Path(request["data"]), questions=request["questions"], blocks=request["blocks"])

    def timed(name: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = run()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds[name] = time.perf_counter() - start
        return result

    checkpoint = open_checkpoint(Path(request["checkpoint"]))
    dtype = getattr(torch, request["dtype"])
    model = timed("load", lambda: load_model(checkpoint, dtype=dtype, device=device))
    compiler = INDUCTOR.get(device)
    engine = timed(
        "engine", lambda: Engine(model, row_tokens=rows, device=device, compiler=compiler)
    )
    works = _works(engine, data)
    for turn in ("first", "again"):
        for name, run in works.items():
            timed(f"{name}, {turn}", run)
    waits = sum(seconds[f"{name}, first"] - seconds[f"{name}, again"] for name in works)
    compiled = engine_graphs()
    print(json.dumps({"compile": seconds["engine"] + waits, "graphs": compiled, "steps": seconds}))


def _works(engine: Engine, data: Data) -> dict[str, Callable[[], object]]:
    """All kinds of work, by name."""
    text = data.slices[0]
    return {
        "blocks": partial(score_blocks, engine, text.tokens),
        "documents": partial(score_blocks, engine, text.tokens, text.starts),
        **{task.name: partial(score_requests, engine, task.requests) for task in data.tasks},
    }


def engine_graphs() -> dict[str, int]:
    """What torch counted: graphs made, and those found in the folder of compiled code."""
    cache = counters["inductor"]
    return {
        "made": counters["stats"]["unique_graphs"],
        "found": cache["fxgraph_cache_hit"],
        "compiled": cache["fxgraph_cache_miss"],
    }


if __name__ == "__main__":
    main()

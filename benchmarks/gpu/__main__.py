"""python -m benchmarks.gpu: speed, parity and memory on the GPU at hand, as a table and as JSON.

Models of random weights are made on the device, as Nanotron checkpoints, and run through the engine
on real requests, beside a plain transformers loop. Needs torch, transformers and numpy, no network,
and the file that `make bench-gpu-data` writes. A part that fails is named in the table, the others go
on, and the exit code is 1.
"""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.gpu import host
from benchmarks.gpu.data import Data, read
from benchmarks.gpu.models import SIZES
from benchmarks.gpu.report import Report
from benchmarks.gpu.session import Options, Session
from benchmarks.gpu.table import table
from evaluation.errors import ConfigError, EvaluationError
from evaluation.scoring.engine.device import choose_device

ROWS = {"cpu": 1024, "cuda": 16_384}
"""Tokens of a pass, as a job has them unless it is configured otherwise."""


def main(arguments: list[str] | None = None) -> int:
    try:
        return _run(_parser().parse_args(arguments, Options()))
    except EvaluationError as error:
        print(error, file=sys.stderr)
        return 1


def _run(options: Options) -> int:
    _settle(options)
    torch.set_num_threads(options.threads)
    data = read(options.data, questions=options.questions, blocks=options.blocks)
    _check_fits(data, options.models)
    report = Report(options.output)
    report.set("about", _about(options, data))
    for task in data.tasks:
        report.part(
            ("host", task.name),
            lambda asked=task.requests: host.figures(asked, ROWS["cuda"]),
        )
    scratch = Path(tempfile.mkdtemp(prefix="bench-gpu-", dir=options.scratch))
    try:
        for name in options.models:
            Session(name, options, data, scratch, report).run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(table(report.content))
    print(f"\nwritten to {options.output}")
    return 1 if report.failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    demo = Path(".demo")
    parser.add_argument(
        "--data", type=Path, default=demo / "bench_gpu_requests.json.gz", help="requests as ids"
    )
    parser.add_argument("--output", type=Path, default=demo / "bench_gpu.json")
    parser.add_argument("--models", nargs="+", choices=SIZES, default=["135m", "1.7b", "8b"])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), help="float32 on CPU")
    parser.add_argument("--row-tokens", type=int, help="of a pass (16,384; 1,024 on CPU)")
    parser.add_argument("--questions", type=int, default=0, help="of each task, spread; 0: all")
    parser.add_argument("--blocks", type=int, default=0, help="of each slice; 0: all")
    parser.add_argument("--sample", type=int, default=400, help="questions that the loop is asked")
    parser.add_argument("--scratch", type=Path, help="folder for checkpoints (17 GB for the 8b)")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the host")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    return parser


def _settle(options: Options) -> None:
    """Fills in what depends on the device; raises ConfigError."""
    options.device = choose_device(options.device)
    options.dtype = options.dtype or ("bfloat16" if options.device == "cuda" else "float32")
    if options.row_tokens is None:
        options.row_tokens = ROWS[options.device]
    for key in ("sample", "threads", "row_tokens"):
        if getattr(options, key) < 1:
            name = key.replace("_", "-")
            raise ConfigError(f"--{name} {getattr(options, key)}: must be at least 1")
    options.data = options.data.absolute()


def _about(options: Options, data: Data) -> dict[str, Any]:
    """What the figures were taken on."""
    is_gpu = options.device == "cuda"
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": str(torch.cuda.get_device_properties(0)) if is_gpu else platform.processor(),
        "clock": "wall" if is_gpu else "CPU",
        "dtype": options.dtype,
        "row_tokens": options.row_tokens,
        "threads": options.threads,
        "cpus": os.cpu_count(),
        "seed": options.seed,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "transformers": transformers.__version__,
        "data": data.about,
        "tasks": {task.name: task.questions for task in data.tasks},
        "slices": {one.name: list(one.tokens.shape) for one in data.slices},
    }


def _check_fits(data: Data, models: list[str]) -> None:
    """Raises ConfigError for a model with fewer words than the requests use."""
    for name in models:
        if data.highest >= SIZES[name].vocabulary:
            raise ConfigError(
                f"--models {name}: it has {SIZES[name].vocabulary} words, but the requests hold id "
                f"{data.highest}; make them with a smaller tokenizer"
            )


if __name__ == "__main__":
    sys.exit(main())

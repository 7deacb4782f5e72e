"""python -m benchmarks.loading: compares reading a checkpoint's weights by several threads and by one.

A checkpoint of random weights is written, and read in turn by each number of threads: with a warm page
cache, and with a cold one, as far as the kernel drops it on request. Ratios are those of the medians of
one run on one machine. To a GPU, weights go through pinned memory.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu.models import Size, write_checkpoint
from evaluation.checkpoints.completeness import complete_parameters
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.headers import weight_files
from evaluation.checkpoints.load import empty_model
from evaluation.checkpoints.weights import READERS, load_weights
from evaluation.files import write_json

Parameters = dict[str, torch.Tensor]


def main() -> None:
    options = _options()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "7"
        width, layers = options.width, options.layers
        size = Size(hidden=width, intermediate=4 * width, layers=layers, heads=32, kv_heads=8)
        write_checkpoint(path, size, torch.bfloat16, torch.device("cpu"), seed=0, tp=options.tp)
        checkpoint = open_checkpoint(path)
        parameters = _parameters(checkpoint, device, dtype)
        parts = [
            (s, source) for p, source in complete_parameters(checkpoint).values() for s in p.shards
        ]
        files = weight_files(checkpoint.path)
        count = sum(path.stat().st_size for path in files)
        ways = {
            f"{n} threads": partial(load_weights, parts, parameters, readers=n)
            for n in sorted({1, 2, READERS[device.type]})
        }
        speeds = _measured(ways, files, count, options.rounds)
    result = {"device": device.type, "dtype": str(dtype), "cores": len(os.sched_getaffinity(0)),
              "bytes": count, "files": len(files), "mb_per_s": speeds}  # fmt: skip
    write_json(options.output, result)
    print(json.dumps(result, indent=2))


def _measured(
    ways: dict[str, Callable[[], None]], files: list[Path], size: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Return the MB/s of each way: medians over rounds in which the ways take turns.

    They are by wall time, cold and warm, and by CPU time, which other processes do not change.
    """
    states = ("cold", "warm", "warm_cpu")
    seconds: dict[str, dict[str, list[float]]] = {way: {one: [] for one in states} for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            for state in ("cold", "warm"):  # the cold read warms the cache
                if state == "cold":
                    _drop(files)
                start, cpu = time.perf_counter(), time.process_time()
                run()
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                seconds[way][state].append(time.perf_counter() - start)
            seconds[way]["warm_cpu"].append(time.process_time() - cpu)
    found = {
        way: {state: round(size / statistics.median(times) / 1e6, 1) for state, times in of.items()}
        for way, of in seconds.items()
    }
    first = next(iter(found.values()))
    for speeds in found.values():
        speeds |= {f"{state}_ratio": round(speeds[state] / first[state], 2) for state in states}
    return found


def _drop(files: list[Path]) -> None:
    """Ask the kernel to drop files from its cache, which works if they are on a disk and written."""
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _parameters(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Parameters:
    model = empty_model(checkpoint.architecture, dtype, [device])
    found = {name: parameter.detach() for name, parameter in model.named_parameters()}
    for parameter in found.values():
        parameter.zero_()  # so that its memory is really allocated
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="where the checkpoint is written; TMPDIR if not given"
    )
    parser.add_argument("--width", type=int, default=1536)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--tp", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(".demo/loading.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""python -m benchmarks.gpu: measures speed, share of the peak and parity on this machine's GPU.

Llamas of random weights are saved as Nanotron checkpoints, and run by the engine and a plain
transformers loop. If a model fails, the table names it, the others still run, and the exit code is 1.
"""

import argparse
import json
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel

from benchmarks.gpu.models import SIZES, WINDOW, Size, write_checkpoint
from benchmarks.gpu.questions import BATCH, CHOICES, Task, loop, new_tasks, new_text, sample
from benchmarks.gpu.work import Work, matmul_peak, of_blocks, of_requests
from benchmarks.measure import measure, peak_bytes
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import EvaluationError
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import INDUCTOR
from evaluation.scoring.engine.rows import score_blocks, score_requests
from evaluation.scoring.gpus import choose_device

COMPLETION = 128
"""Tokens of a completion."""

ROWS = {"cpu": 1024, "cuda": 16_384}
"""Tokens of a pass, the defaults of the configuration."""

TARGETS = {
    "1.7b.tier2_block": {"peak_share": ">= 60%"},
    "135m.tier2_block": {"peak_share": ">= 35%"},
    "mmlu_5shot": {"times_faster": ">= 20x"},
    "mmlu_0shot": {"times_faster": ">= 8x"},
    "hellaswag": {"times_faster": ">= 8x"},
}
"""Targets on an H100, by a part of a figure's name and by its last part."""

SHOWN = {
    "load_gb_per_second": "{:.1f} GB/s",
    "matmul_flops": "{:.3g} FLOP/s",
    "first_use_seconds": "{:.1f} s",
    "tokens_per_second": "{:,.0f}",
    "peak_share": "{:.0%}",
    "peak_memory_gb": "{:.1f} GB",
    "times_faster": "{:.1f}x",
    "largest_difference": "{:.1e}",
    "equal": "{:.0%}",
}
"""Figures in the table, with their formats; the others are only in the JSON."""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.device = choose_device(options.device)
    except EvaluationError as error:
        print(error, file=sys.stderr)
        return 1
    is_gpu = options.device == "cuda"
    options.dtype = options.dtype or ("bfloat16" if is_gpu else "float32")
    options.row_tokens = options.row_tokens or ROWS[options.device]
    torch.set_num_threads(1)
    found: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": str(torch.cuda.get_device_properties(0)) if is_gpu else platform.processor(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "options": {name: str(value) for name, value in vars(options).items()},
        "models": {},
    }
    failed = False
    for name in options.models:
        figures = found["models"][name] = {}
        try:
            _measure_model(figures, SIZES[name], options)
        except Exception as error:  # noqa: BLE001 - after any error the other models still run
            traceback.print_exc()
            figures["error"], failed = str(error), True
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(found, indent=1))
    print(_table(found["models"]))
    print(f"\nwritten to {options.output}")
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(".demo/bench_gpu.json"))
    parser.add_argument("--models", nargs="+", choices=SIZES, default=["135m", "1.7b", "8b"])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), help="float32 on CPU")
    parser.add_argument("--compile", choices=("auto", "off"), default="auto", help="layers")
    parser.add_argument("--row-tokens", type=int, help="of a pass (16,384; 1,024 on CPU)")
    parser.add_argument("--questions", type=int, default=20_000, help="of a task, at most")
    parser.add_argument("--blocks", type=int, default=896, help="of text, 2,048 tokens each")
    parser.add_argument("--sample", type=int, default=400, help="questions that the loop is asked")
    parser.add_argument("--completions", type=int, default=128, help="of 128 tokens each; 0: none")
    parser.add_argument("--scratch", type=Path, help="folder for checkpoints (17 GB for the 8b)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and requests")
    return parser


def _measure_model(figures: dict[str, Any], size: Size, options: argparse.Namespace) -> None:
    """Measure a model, and add each figure to `figures` once it is known."""
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    with tempfile.TemporaryDirectory(prefix="bench-gpu-", dir=options.scratch) as folder:
        path = Path(folder) / "1"
        write_checkpoint(path, size, dtype, device, seed=options.seed)
        load = partial(load_model, open_checkpoint(path), dtype=dtype, device=options.device)
        start = time.perf_counter()
        model = load()
        if device.type == "cuda":
            torch.cuda.synchronize()
        taken = time.perf_counter() - start
    figures["load_gb_per_second"] = size.parameters * dtype.itemsize / 1e9 / taken
    figures["matmul_flops"] = peak = matmul_peak(size, options.row_tokens, device, dtype)
    compiler = INDUCTOR.get(device.type) if options.compile == "auto" else None
    engine = Engine(model, row_tokens=options.row_tokens, device=device.type, compiler=compiler)
    for name, run, few, work in _kinds(engine, size, options):
        figures[name] = _figures(engine, run, few)
        figures[name]["peak_share"] = work.flops(size) / figures[name]["seconds"] / peak
    for name, task in new_tasks(size.vocabulary, options.questions, options.seed).items():
        sampled = sample(task, options.sample)
        ours = score_requests(engine, sampled)
        loop(model, sampled[: CHOICES * 8], BATCH[device.type])  # warm-up
        theirs = measure(device, partial(loop, model, sampled, BATCH[device.type]))
        pairs = zip(ours, theirs.result, strict=True)
        rate = len(task) / figures[f"tier3_{name}"]["seconds"]
        figures[f"tier3_{name}"] |= {
            "times_faster": rate * theirs.seconds / len(sampled),
            "largest_difference": max(abs(one.logprob - nats) for one, nats in pairs),
        }
    if options.completions:
        figures["completions"] = _completions(model, size, options)


def _completions(
    model: PreTrainedModel, size: Size, options: argparse.Namespace
) -> dict[str, float]:
    """Measure completions, after a short run of each way."""
    from benchmarks.gpu import completions

    prompts = completions.new_prompts(size.vocabulary, options.completions, options.seed)
    ways = [partial(way, model, prompts) for way in (completions.engine, completions.loop)]
    for way in ways:
        way(2)
    ours, theirs = (measure(model.device, partial(way, COMPLETION)) for way in ways)
    pairs = list(zip(ours.result, theirs.result, strict=True))
    return {
        "tokens_per_second": len(prompts) * COMPLETION / ours.seconds,
        "times_faster": theirs.seconds / ours.seconds,
        "equal": sum(one == other for one, other in pairs) / len(pairs),
    }


def _kinds(
    engine: Engine, size: Size, options: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], object], Callable[[], object], Work]]:
    """Yield each kind of scoring: its name, the whole run, a few passes of it, and its necessary work."""
    length = min(WINDOW, options.row_tokens)
    tokens, starts = new_text(size.vocabulary, options.blocks, length, options.seed)
    first = tokens[: 2 * options.row_tokens // length]
    for kind, begins in (("block", None), ("document", starts)):
        inside = None if begins is None else begins[begins < first.numel()]
        run, few = partial(score_blocks, engine, tokens, begins), partial(score_blocks, engine)
        yield f"tier2_{kind}", run, partial(few, first, inside), of_blocks(tokens, begins)
    for name, task in new_tasks(size.vocabulary, options.questions, options.seed).items():
        # Few questions make a short row, which is another shape to compile than a whole pass.
        parts = [sample(task, count) for count in (300, 4)]
        few = partial(_score_each, engine, parts)
        yield f"tier3_{name}", partial(score_requests, engine, task), few, of_requests(task)


def _score_each(engine: Engine, parts: list[Task]) -> None:
    for part in parts:
        score_requests(engine, part)


def _figures(
    engine: Engine, run: Callable[[], object], few: Callable[[], object]
) -> dict[str, float]:
    """Measure a run, after two short runs, the first of which also compiles."""
    first, again = (measure(engine.device, few).seconds for _ in range(2))
    read = engine.tokens_processed
    measured = measure(engine.device, run)
    return {
        "first_use_seconds": first - again,
        "seconds": measured.seconds,
        "tokens_per_second": (engine.tokens_processed - read) / measured.seconds,
        "peak_memory_gb": peak_bytes(engine.device) / 1e9,
    }


def _table(models: dict[str, Any]) -> str:
    rows = [("", "figure", "target (H100)")]
    flat = {
        f"{model}.{name}": value
        for model, figures in models.items()
        for part, found in figures.items()
        for name, value in (
            {f"{part}.{end}": one for end, one in found.items()}
            if isinstance(found, dict)
            else {part: found}
        ).items()
    }
    for place, value in flat.items():
        above, _, end = place.rpartition(".")
        if end == "error":
            rows.append((f"failed: {above}", str(value)[:60], ""))
        elif end in SHOWN:
            targets = [ends[end] for part, ends in TARGETS.items() if part in above and end in ends]
            rows.append((place, SHOWN[end].format(value), "".join(targets)))
    return "\n".join(f"{place:<60}  {figure:<20}  {target}" for place, figure, target in rows)


if __name__ == "__main__":
    sys.exit(main())

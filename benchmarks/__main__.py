"""python -m benchmarks: compares the engine's speed with its peers' and prints a table.

Everything runs in one process, on one model, with the same threads. On CPU, seconds are CPU time in
float32; on a GPU, they are wall time in bfloat16.
"""

import argparse
import platform
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from benchmarks.measure import load, matmul_flops
from benchmarks.peers import Pairs, compare_blocks, compare_candidates, run_engine
from benchmarks.questions import FIVE_SHOT, ZERO_SHOT, as_pairs, read_questions
from evaluation.files import write_json
from evaluation.reporting.terminal import as_table
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import INDUCTOR
from evaluation.settings.computing import Scoring


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    model, tokenizer = load(options.model)
    device, dtype = model.device, model.dtype
    scoring = Scoring()
    row_tokens = scoring.row_tokens if device.type == "cuda" else scoring.cpu_row_tokens
    engine = Engine(
        model, row_tokens=row_tokens, device=device.type, compiler=INDUCTOR.get(device.type)
    )
    zero_shot = _tasks(options.packages, ZERO_SHOT, "rc_0shot", options.zero_shot)
    five_shot = _tasks(options.packages, FIVE_SHOT, "rc_5shot", options.five_shot)
    run_engine(engine, tokenizer, zero_shot[0])  # warm-up; compiles on a GPU
    peak = matmul_flops(device, dtype)
    result: dict[str, Any] = {
        "model": str(options.model),
        "device": _device_name(device),
        "dtype": str(dtype).removeprefix("torch."),
        "threads": options.threads,
        "torch": torch.__version__,
        "matmul_flops": peak,
        "zero_shot": compare_candidates(model, tokenizer, engine, zero_shot),
        "pooled": compare_candidates(model, tokenizer, engine, [list(chain(*zero_shot))]),
        "five_shot": compare_candidates(model, tokenizer, engine, five_shot),
        "blocks": compare_blocks(model, engine, _text(tokenizer, options, zero_shot + five_shot)),
    }
    result["blocks"]["matmul_fraction"] = result["blocks"]["engine_flops"] / peak
    write_json(options.output, result)
    print(_table(result))
    print(f"\nwritten to {options.output}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    demo = Path(".demo")
    parser.add_argument("--model", type=Path, default=demo / "models/smollm2-135m-instruct")
    parser.add_argument("--packages", type=Path, default=demo / "packages", help="folder of wheels")
    parser.add_argument("--output", type=Path, default=demo / "benchmarks.json")
    parser.add_argument("--threads", type=int, default=1, help="idle threads take CPU time, too")
    parser.add_argument("--zero-shot", type=int, default=8, help="questions of each task")
    parser.add_argument("--five-shot", type=int, default=20, help="questions")
    parser.add_argument("--blocks", type=int, default=6, help="blocks of Tier2")
    parser.add_argument("--length", type=int, default=1024, help="tokens of a block")
    return parser.parse_args()


def _tasks(packages: Path, tasks: tuple[str, ...], variant: str, count: int) -> list[Pairs]:
    return [as_pairs(read_questions(packages, f"{task}/{variant}", count)) for task in tasks]


def _text(
    tokenizer: PreTrainedTokenizerBase, options: argparse.Namespace, tasks: list[Pairs]
) -> torch.Tensor:
    """Return blocks of the questions' own text, repeated to the requested length."""
    tokens = tokenizer("\n".join(context for pairs in tasks for context, _ in pairs))["input_ids"]
    needed = options.blocks * options.length
    repeated = (tokens * (1 + needed // len(tokens)))[:needed]
    return torch.tensor(repeated).view(options.blocks, options.length)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or "cpu"


def _table(result: dict[str, Any]) -> str:
    runs = [result[name] for name in ("zero_shot", "pooled", "five_shot")]
    tier2 = result["blocks"]
    rows = [
        ("", "engine", "peer", "ratio", "target"),
        _speed("0-shot candidates, task by task, s", runs[0], "4"),
        _speed("0-shot candidates, all tasks at once, s", runs[1], "4"),
        _speed("5-shot candidates, s", runs[2], "10"),
        (
            "largest log-prob difference",
            f"{max(run['largest_difference'] for run in runs):.1e}",
            "",
            "",
            "< 1e-3",
        ),
        (
            "Tier2 tokens/s (peer: bare body)",
            f"{tier2['engine_tokens_per_second']:.0f}",
            f"{tier2['body_tokens_per_second']:.0f}",
            f"{tier2['body_fraction']:.2f} without head",
            ">= 0.95",
        ),
        (
            "Tier2 peak memory above the model, GB (peer: logits alone)",
            f"{tier2['engine_added_gb']:.2f}",
            f"{tier2['all_logits_gb']:.2f}",
            "",
            "",
        ),
        ("Tier2 share of matmul peak", f"{tier2['matmul_fraction']:.0%}", "", "", ""),
    ]
    return as_table(rows)


def _speed(name: str, run: dict[str, Any], target: str) -> tuple[str, ...]:
    engine, peer = f"{run['engine_seconds']:.1f}", f"{run['lm_eval_seconds']:.1f}"
    return name, engine, f"{peer} (lm-eval)", f"{run['times_faster']:.1f}x", f">= {target}x"


if __name__ == "__main__":
    main()

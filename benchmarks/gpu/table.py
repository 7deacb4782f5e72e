"""The figures of a run as a table to read."""

from collections.abc import Iterator
from typing import Any

Row = tuple[str, ...]

TIER2_AIMS = {"1.7b": 0.60, "135m": 0.35}
"""Shares of the measured peak that are aimed at, on an H100; so are the others below."""

LOOP_AIMS = {"mmlu_5shot": 20.0, "mmlu_0shot": 8.0, "hellaswag": 8.0}
BUSY_AIM = 0.90
COMPILE_AIM = 5.0


def table(content: dict[str, Any]) -> str:
    """Columns: what, figure, beside it, aim."""
    rows: list[Row] = [("", "figure", "beside it", "aim (H100)")]
    rows += _host(content.get("host", {}))
    for name, model in content.get("models", {}).items():
        rows += [("", "", "", ""), (f"Llama {name}", "", "", "")]
        rows += _model(name, model)
    rows += [(f"failed: {name}", "", "", "") for name in content["failed"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _host(tasks: dict[str, Any]) -> Iterator[Row]:
    for name, laid in tasks.items():
        if "error" not in laid:
            yield (
                f"host lays out {name}",
                f"{laid['tokens_per_second'] / 1e6:.2f}M tokens/s",
                f"{laid['passes']} passes, {laid['first_seconds']:.2f} s before the first",
                ">= 3M",
            )


def _model(name: str, model: dict[str, Any]) -> Iterator[Row]:
    if _is_there(model, "load"):
        load = model["load"]
        yield "load, s", f"{load['seconds']:.1f}", f"{load['gb_per_second']:.1f} GB/s", ""
    if _is_there(model, "matmul"):
        own, best = model["matmul"]["own_shapes"], model["matmul"]["best_shape"]
        yield "matmul peak, TFLOP/s", f"{own / 1e12:.4g}", f"best shape {best / 1e12:.4g}", ""
    yield from _compiling(model.get("first_use", {}))
    for kind, run in model.get("tier2", {}).items():
        if "error" not in run:
            aim = TIER2_AIMS.get(name) if kind == "block" else None
            yield from _run(f"Tier2, {kind} attention", run, aim)
    for task, run in model.get("tier3", {}).items():
        if "error" not in run:
            yield from _run(
                f"Tier3 {task}, {run['questions_per_second']:.1f} questions/s", run, None
            )
            yield from _beside(task, model)
    for task, run in model.get("answers", {}).items():
        if "engine" in run:
            yield from _answers(task, run)
        elif task == "missing":
            yield f"answers: not measured, {run}", "", "", ""


def _compiling(runs: dict[str, Any]) -> Iterator[Row]:
    for name, run in runs.items():
        if name in ("cold", "warm"):
            graphs = run["graphs"]
            told = (
                f"{graphs['made']} graphs, {graphs['found']} found, {graphs['compiled']} compiled"
            )
            aim = f"< {COMPILE_AIM:.0f}" if name == "warm" else ""
            yield f"compile, {name}, s", f"{run['compile']:.1f}", told, aim


def _run(title: str, run: dict[str, Any], aim: float | None) -> Iterator[Row]:
    speed, memory = f"{run['tokens_per_second']:,.0f} tokens/s", run["peak_memory_gb"]
    share = f"{run['peak_share']:.0%} of the peak, {memory:.1f} GB"
    yield title, speed, share, "" if aim is None else f">= {aim:.0%}"
    yield "    busy", f"{run['busy']:.0%}", "", f">= {BUSY_AIM:.0%}"


def _beside(task: str, model: dict[str, Any]) -> Iterator[Row]:
    loop = model.get("loop", {}).get(task, {})
    if "times_faster" in loop:
        aim = LOOP_AIMS.get(task)
        yield (
            "    beside the plain loop",
            f"{loop['times_faster_whole']:.1f}x",
            f"{loop['times_faster']:.1f}x on its sample; differ by {loop['largest_difference']:.1e}",
            "" if aim is None else f">= {aim:.0f}x",
        )


def _answers(task: str, run: dict[str, Any]) -> Iterator[Row]:
    rate, memory = run["engine"]["tokens_per_second"], run["engine"]["peak_memory_gb"]
    told = f"{run['prompts']} prompts, {memory:.1f} GB"
    yield f"answers to {task}", f"{rate:,.0f} tokens/s", told, ""
    padded = run["padded"]
    told = f"{padded['same_answers']:.0%} of the answers agree"
    yield "    beside transformers, padded", f"{padded['times_faster']:.1f}x", told, ""


def _is_there(model: dict[str, Any], part: str) -> bool:
    return part in model and "error" not in model[part]

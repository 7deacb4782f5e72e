"""python -m benchmarks.scale: evaluates many checkpoints of a tiny model on the Slurm test cluster.

It measures the workflow, not the model: wall time, jobs, the Snakemake process, files. A job has one GPU
and thus one process, since the simulated GPUs share the machine's cores. It needs root and Slurm's
packages, like `tests.slurm.cluster`, and starts a cluster if none is up.
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from demo.nanotron_writer import import_hf
from evaluation.files import write_json
from evaluation.reporting.terminal import as_table
from tests.slurm import cluster
from tests.slurm.runs import Run
from tests.workflow.world import World, build_world

STAGES = ("stage1", "stage2", "stage3", "stage4")
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--checkpoints", type=int, nargs="+", default=[52, 200])
    parser.add_argument("--per-job", type=int, default=16, help="checkpoints of one job")
    parser.add_argument("--output", type=Path, default=Path(".demo/scale.json"))
    options = parser.parse_args()
    was_up = cluster.is_up()
    if not was_up:
        cluster.up()
    disable_progress_bar()
    os.environ["OMP_NUM_THREADS"] = "1"  # the simulated GPUs of a node share few cores
    try:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            runs = [_run(Path(folder), n, options.per_job) for n in options.checkpoints]
    finally:
        if not was_up:
            cluster.down()
    write_json(options.output, runs)
    names = [name for name in runs[0] if name != "inodes_by_folder"]
    print(as_table([names, *([str(run[name]) for name in names] for run in runs)]))
    print(f"written to {options.output}")


def build_ladder(folder: Path, per_stage: int) -> World:
    """Return the tests' tiny world with four stages of `per_stage` checkpoints, prefilled."""
    world = build_world(folder)
    model = AutoModelForCausalLM.from_pretrained(folder / "hf" / "1-10", trust_remote_code=False)
    stages: dict[str, Any] = {}
    dice = torch.Generator().manual_seed(0)
    for number, name in enumerate(STAGES):
        stages[name] = {
            "checkpoints": str(folder / "ladder" / name),
            "steps": "all",
            "suites": ["sft" if name == "stage4" else "base"],
        }
        if number:
            stages[name]["bridge"] = {"stage": STAGES[number - 1]}
            stages[name]["objective"] = [{"tier": "tier3", "want": "improve", "margin": 0.0}]
        for step in range(1, per_stage + 1):
            weight = model.model.norm.weight.data
            weight += 0.01 * torch.randn(weight.shape, generator=dice)
            model.save_pretrained(folder / "hf" / "now")
            import_hf(
                folder / "hf" / "now", folder / "ladder" / name, tp=1, step=100 * step,
                sequence_length=64, tokenizer_name=str(folder / "tokenizer"),
            )  # fmt: skip
    world.change(stages=stages)
    done = world.evaluation("prefill")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return world


def _run(parent: Path, checkpoints: int, per_job: int) -> dict[str, Any]:
    """Measure one run from an empty results folder to the front page.

    `cpu_s` and `peak_mb` are those of the Snakemake process, `local_cpu_s` of the processes that it
    starts on its machine: queries, deltas, tables, reports. `inodes` counts all files and folders that
    the run leaves: results, score store, logs, Snakemake's records.
    """
    name = f"{checkpoints}-{per_job}"
    world = build_ladder(parent / f"world-{name}", checkpoints // len(STAGES))
    folder = parent / f"run-{name}"
    run = Run(
        world,
        folder,
        folder / "results",
        profile={
            "# shared_scoring:": "shared_scoring:",
            "#   checkpoints: 16": f"  checkpoints: {per_job}",
        },
    )
    begin = time.monotonic()
    run.start("all")
    usage = _follow(run)
    wall = time.monotonic() - begin
    if run.wait(1.0):
        raise RuntimeError(run.log[-3000:])
    jobs = cluster.slurm("squeue", "--states=all", "-h", "-o", "%Z").splitlines()
    paths = [path for path in folder.rglob("*") if "profile" not in path.parts]
    return {
        "checkpoints": checkpoints,
        "per_job": per_job,
        "jobs": jobs.count(str(folder)),
        "wall_s": round(wall),
        **usage,
        "inodes": len(paths),
        "inodes_per_checkpoint": round(len(paths) / checkpoints, 1),
        "megabytes": round(sum(p.lstat().st_size for p in paths) / 1e6, 1),
        "inodes_by_folder": Counter("/".join(p.relative_to(folder).parts[:2]) for p in paths),
    }


def _follow(run: Run) -> dict[str, float]:
    """Wait for the end; return CPU seconds of the process and of its children, and peak memory in MB."""
    process = run.process
    assert process is not None
    found = {"cpu_s": 0.0, "local_cpu_s": 0.0, "peak_mb": 0.0}
    while process.poll() is None:
        try:
            words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:  # the process has just ended
            break
        found["cpu_s"] = (int(words[11]) + int(words[12])) / TICKS
        found["local_cpu_s"] = (int(words[13]) + int(words[14])) / TICKS
        peak = [int(line.split()[1]) / 1000 for line in status if line.startswith("VmHWM")]
        found["peak_mb"] = max([found["peak_mb"], *peak])
        time.sleep(0.5)
    process.wait()
    return {key: round(value, 1) for key, value in found.items()}


if __name__ == "__main__":
    main()

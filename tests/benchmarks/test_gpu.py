"""`python -m benchmarks.gpu` on CPU with a tiny model, where nothing else is installed."""

import gc
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from benchmarks.gpu import host, work
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.data import Data, Slice, Task, read, write
from benchmarks.gpu.loop import Loop
from benchmarks.gpu.models import SIZES, write_checkpoint
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import SourceError
from evaluation.scoring.engine.window import Request
from tests.conftest import ROOT

LENGTH = 48
BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pydantic", "snakemake", "datasets", "matplotlib", "jsonschema"}:
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Missing())
"""


def questions(count: int, shared: int, random: np.random.Generator) -> Task:
    """Questions of three candidates after a shared prefix of so many tokens."""
    prefix = random.integers(1, 1000, shared)
    requests, numbers = [], []
    for number in range(count):
        context = (*prefix.tolist(), *random.integers(1, 1000, 6).tolist())
        for _ in range(3):
            end = tuple(random.integers(1, 1000, int(random.integers(1, 4))).tolist())
            requests.append(Request(context, end, f"{number}"))
            numbers.append(number)
    return Task(f"shared_{shared}", requests, numbers)


def small(seed: int = 0) -> Data:
    random = np.random.default_rng(seed)
    tokens = torch.from_numpy(random.integers(1, 1000, (3, LENGTH)))
    slices = [Slice(name, tokens, torch.tensor([0, 20, 60, 100])) for name in ("text", "code")]
    return Data([questions(4, 3, random), questions(4, 30, random)], slices, {"made": "here"})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "small.json.gz"
    write(path, small())
    return path


@pytest.fixture(scope="module")
def found(data: Path) -> dict[str, Any]:
    """What a whole run gives in a process without what a bare machine lacks."""
    folder = data.parent / "bare"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BARE)
    output = data.parent / "found.json"
    command = [sys.executable, "-m", "benchmarks.gpu", "--device", "cpu", "--models", "tiny"]
    done = subprocess.run(
        [*command, "--sample", "2", "--scratch", folder, "--data", data, "--output", output],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"tiny\.loop\.shared_3\.times_faster +[\d.]+x\n", done.stdout)
    assert re.search(r"host\.shared_3\.tokens_per_second +[\d,]+ +>= 3,000,000\n", done.stdout)
    assert not list(folder.glob("bench-gpu-*"))
    content: dict[str, Any] = json.loads(output.read_text())
    return content


def test_the_block_on_imports_bites(data: Path, found: dict[str, Any]) -> None:
    folder = data.parent / "bare"
    done = subprocess.run(
        [sys.executable, "-c", "import pydantic"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert found["failed"] == []


def test_every_part_is_there(found: dict[str, Any]) -> None:
    model = found["models"]["tiny"]
    assert model["checkpoint"]["parameters"] == SIZES["tiny"].parameters
    assert model["load"]["seconds"] > 0
    assert model["matmul"]["best_shape"] >= model["matmul"]["own_shapes"] > 0
    assert set(model["first_use"]) == {"cold", "warm"}
    assert all(run["steps"]["load"] > 0 for run in model["first_use"].values())
    assert set(model["tier2"]) == {"block", "document"}
    assert set(model["tier3"]) == set(model["loop"]) == {"shared_3", "shared_30"}
    for run in (*model["tier2"].values(), *model["tier3"].values()):
        assert 0 < run["peak_share"] < 1.5  # the peak of so small shapes is no peak
        assert run["peak_memory_gb"] > 0
        assert run["tokens_per_second"] > 0


def test_digits_are_those_of_the_plain_loop(found: dict[str, Any]) -> None:
    for run in found["models"]["tiny"]["loop"].values():
        assert run["largest_difference"] < 1e-4
        assert run["other_greedy"] == 0


def test_the_same_text_costs_the_same_nats_in_either_slice(found: dict[str, Any]) -> None:
    """And apart it is harder than in one sequence only by chance: a few nats, not the same."""
    whole, apart = (found["models"]["tiny"]["tier2"][kind] for kind in ("block", "document"))
    assert whole["tokens"] == apart["tokens"] == 2 * 3 * LENGTH
    assert 5 < whole["nats_per_token"] < 20
    assert whole["nats_per_token"] != apart["nats_per_token"]


def test_work_is_that_of_a_trie() -> None:
    requests = [
        Request((1, 2), (3, 4)),  # reads 1 2 3, asks at 2 and 3
        Request((1, 2), (3, 5)),  # reads the same
        Request((1, 2), (6,)),  # asks at 2, which is asked already
        Request((1,), (2,)),  # asks at 1
        Request((7, 8), (9, 9)),  # reads 7 8 9
    ]
    assert work.of_requests(requests) == work.Work(tokens=6, pairs=12, queries=5)
    assert work.of_requests(requests * 2) == work.of_requests(requests)


def test_work_of_blocks() -> None:
    tokens = torch.zeros(2, 4)
    assert work.of_blocks(tokens) == work.Work(tokens=8, pairs=20, queries=6)
    starts = torch.tensor([0, 3, 6])
    assert work.of_blocks(tokens, starts) == work.Work(tokens=8, pairs=6 + 1 + 3 + 3, queries=4)


@pytest.mark.parametrize("name", ["135m", "1.7b", "8b"])
def test_sizes_are_those_they_are_named_after(name: str) -> None:
    billions = {"135m": 0.135, "1.7b": 1.71, "8b": 8.03}[name]
    assert SIZES[name].parameters / 1e9 == pytest.approx(billions, rel=0.01)


def test_the_host_lays_out_every_distinct_token() -> None:
    task = questions(20, 30, np.random.default_rng(1))
    laid = host.figures(task.requests, 128)
    distinct = work.of_requests(task.requests).tokens
    assert distinct < laid["tokens"] < distinct + 36 * laid["passes"]
    assert laid["passes"] >= 2
    assert 0 < laid["first_seconds"] < laid["seconds"]


def test_the_file_gives_back_what_was_written(data: Path) -> None:
    given, got = small(), read(data)
    for one, other in zip(given.tasks, got.tasks, strict=True):
        assert [(r.context, r.continuation) for r in one.requests] == [
            (r.context, r.continuation) for r in other.requests
        ]
        assert one.question == other.question
    assert all(
        torch.equal(a.tokens, b.tokens) for a, b in zip(given.slices, got.slices, strict=True)
    )
    part = read(data, questions=2, blocks=1)
    assert [task.questions for task in part.tasks] == [2, 2]
    assert set(part.tasks[0].question) == {0, 3}
    assert [len(one.tokens) for one in part.slices] == [1, 1]
    assert part.slices[0].starts.tolist() == [0, 20]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no such file"),
        (b"", "not a file of requests"),
        (gzip.compress(b"{}"), "not a file of requests"),
        (gzip.compress(b"{}" * 99)[:-3], "not a file of requests"),
    ],
)
def test_a_file_that_is_no_file_of_requests(
    tmp_path: Path, content: bytes | None, told: str
) -> None:
    path = tmp_path / "data.json.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError, match=told):
        read(path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--data", "absent.json.gz"], "no such file"),
        (["--sample", "0"], "--sample 0"),
        (["--row-tokens", "0"], "--row-tokens 0"),
        (["--device", "cuda"], "sees no GPU"),
    ],
)
def test_what_cannot_be_run_is_a_sentence(
    arguments: list[str], told: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if told == "sees no GPU" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    given = ["--models", "tiny", "--output", str(tmp_path / "out.json"), "--device", "cpu"]
    data_given = [] if "--data" in arguments else ["--data", str(data)]
    assert main([*given, *data_given, *arguments]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def models() -> list[LlamaForCausalLM]:
    return [one for one in gc.get_objects() if type(one) is LlamaForCausalLM]


def test_a_part_that_fails_is_named_and_the_others_go_on(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the GPU fell off the bus")

    def only_one(model: Any) -> Loop:
        """The engine's model is gone when the loop's is there: two would not fit a GPU."""
        gc.collect()
        assert [one for one in models() if id(one) not in of_others] == [model]
        return Loop(model, 16)

    gc.collect()
    kept = models()  # by other tests of this process
    of_others = {id(one) for one in kept}
    monkeypatch.setattr("benchmarks.gpu.tiers.new_loop", only_one)
    monkeypatch.setattr("benchmarks.gpu.tiers.tier2", fail)
    monkeypatch.setattr("benchmarks.gpu.first_use.cold_and_warm", fail)
    output = tmp_path / "out.json"
    arguments = ["--device", "cpu", "--models", "tiny", "--sample", "2"]
    assert main([*arguments, "--data", str(data), "--output", str(output)]) == 1
    content = json.loads(output.read_text())
    failed = [
        f"models / tiny / {part}" for part in ("first_use", "tier2 / block", "tier2 / document")
    ]
    assert content["failed"] == failed
    assert "fell off the bus" in content["models"]["tiny"]["tier2"]["block"]["error"]
    assert content["models"]["tiny"]["loop"]["shared_30"]["largest_difference"] < 1e-4
    assert "failed: models / tiny / first_use" in capsys.readouterr().out


def test_the_loop_goes_on_with_half_where_memory_is_not_enough(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "1", SIZES["tiny"], torch.float32, torch.device("cpu"), seed=1)
    model = load_model(open_checkpoint(tmp_path / "1"))
    asked = questions(5, 6, np.random.default_rng(2)).requests
    expected = Loop(model, 16).score(asked)
    real = model.forward

    def forward(input_ids: torch.Tensor, **options: Any) -> Any:
        if len(input_ids) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(input_ids=input_ids, **options)

    model.forward = forward
    loop = Loop(model, 16)
    found = loop.score(asked)
    assert loop.batch == 4
    assert [one.is_greedy for one in found] == [one.is_greedy for one in expected]
    assert [one.logprob for one in found] == pytest.approx(
        [one.logprob for one in expected], abs=1e-4
    )

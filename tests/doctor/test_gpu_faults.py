"""A GPU that dies in the middle: one sentence, and the retry goes on from what is stored."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, cast

import pytest
import torch

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import SCORE
from evaluation.errors import (
    CompileError,
    ConfigError,
    EvaluationError,
    GpuFault,
    NotEnoughMemory,
)
from evaluation.scoring.engine import backend
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import Decoding
from evaluation.scoring.engine.gpu import gpu_faults
from evaluation.scoring.engine.window import Request
from evaluation.settings.computing import Scoring
from tests.doctor.conftest import HOLDER, Held
from tests.histories.warm import run_python
from tests.scoring import tiny
from tests.workflow.world import ROOT, World, stored_scores

ILLEGAL = (
    "CUDA error: an illegal memory access was encountered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call"
)


class InductorError(RuntimeError):
    """What torch.compile raises around its causes."""

    __module__ = "torch._inductor.exc"


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (torch.AcceleratorError(ILLEGAL), GpuFault, ["an illegal memory access", "the next run"]),
        (torch.AcceleratorError("unknown"), GpuFault, ["(unknown)", "exclude the node"]),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), GpuFault, ["ECC"]),
        (RuntimeError("CUDNN_STATUS_EXECUTION_FAILED"), GpuFault, ["CUDNN"]),
        (RuntimeError("Triton Error [CUDA]: unspecified launch failure"), GpuFault, ["Triton"]),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), NotEnoughMemory, ["enough memory"]),
        (torch.AcceleratorError("CUDA error: out of memory"), NotEnoughMemory, ["not have enough"]),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when"), NotEnoughMemory, ["CUBLAS"]),
        (CalledProcessError(1, ["gcc"]), CompileError, ["gcc"]),
        (caused(InductorError("x"), RuntimeError("no C compiler.")), CompileError, ["no C compiler"]),
        (InductorError("No space left on device"), CompileError, ["No space left"]),
        (caused(InductorError("y"), RuntimeError(ILLEGAL)), GpuFault, ["illegal memory access"]),
    ],
)  # fmt: skip
def test_faults_as_sentences(error: Exception, kind: type[Exception], words: list[str]) -> None:
    with pytest.raises(kind) as caught, gpu_faults():
        raise error
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
        ValueError("CUDA"),
        ConfigError("no CUDA error: a user's"),
        NotEnoughMemory("the GPU does not have enough memory for 3 rows"),
        KeyboardInterrupt(),
    ],
)
def test_what_is_no_fault_of_the_gpu_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, gpu_faults():
        raise error
    assert caught.value is error


def dying(*_: Any, **__: Any) -> Any:
    raise torch.AcceleratorError(ILLEGAL)


def late(then: Callable[..., Any]) -> Callable[..., Any]:
    """All passes are made, and the GPU dies as the last results are fetched."""

    def call(*arguments: Any, **named: Any) -> Any:
        then(*arguments, **named)
        return dying()

    return call


def subject_of(world: World) -> Subject:
    return step_subject(world.plans["stage2"], 5)


@pytest.mark.parametrize(
    ("place", "name", "is_late", "stored"),
    [
        (backend, "load_model", False, 0),
        (backend, "load_model", True, 0),
        (Engine, "hidden", False, 0),  # the engine's own check
        (backend, "score_blocks", False, 0),
        (backend, "score_blocks", True, 0),
        (backend, "score_requests", False, 1),
        (backend, "score_requests", True, 1),
        (Decoding, "_advance", False, 2),
    ],
)
def test_the_retry_goes_on_from_the_store(
    world: World, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, is_late: bool, stored: int
) -> None:
    subject = subject_of(world)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, late(getattr(place, name)) if is_late else dying)
        with pytest.raises(GpuFault) as caught:
            make(SCORE, subject)
    assert "illegal memory access" in str(caught.value)
    assert caught.value.is_final is False  # the checkpoint is not at fault, so a retry is of use
    before = stored_scores(world.results())
    assert len(before) == stored
    assert make(SCORE, subject).error is None
    assert stored_scores(world.results()).items() > before.items()  # not scored a second time


FAULTY = """
import os

if "PIDS" in os.environ:
    from evaluation.errors import GpuFault
    from evaluation.scoring import job

    scored = job.score

    def score(place):
        with open(os.environ["PIDS"], "a") as file:
            print(place.step, os.getpid(), file=file)
        if place.step == 10:
            raise GpuFault("GPU 0 failed in the middle of a run")
        return scored(place)

    job.score = score
"""


def test_another_process_takes_the_next_step(world: World, tmp_path: Path) -> None:
    """CUDA answers a process no more after a fault, so that all later steps would fail in it."""
    (tmp_path / "sitecustomize.py").write_text(FAULTY)
    pids = tmp_path / "pids"
    command = "-m evaluation score --stage stage1 --step 10 20 --config".split()
    variables = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PIDS": str(pids), "CUDA_VISIBLE_DEVICES": ""}
    done = run_python([*command, str(world.config)], world.folder, cold=True, **variables)
    assert done.returncode == 1
    assert "these failed: 10;" in done.stderr
    assert "GPU 0 failed in the middle of a run" in done.stderr
    (first, one), (second, other) = (line.split() for line in pids.read_text().splitlines())
    assert (first, second) == ("10", "20")
    assert one != other


def full(*_: Any, **__: Any) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_memory_that_another_process_takes_during_the_run(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pass is halved until nothing is left to halve; then the other is named."""
    held("4242, 60000 MiB, /usr/bin/python")
    scoring, checkpoint = Scoring(device="cpu", cpu_row_tokens=1024), cast(Checkpoint, None)
    one = EngineBackend(scoring, checkpoint, lambda: None)
    one.engine = Engine(tiny.model("llama"), row_tokens=1024, device="cpu")
    monkeypatch.setattr(one.engine, "hidden", full)
    with pytest.raises(EvaluationError) as caught:
        one.log_likelihoods([Request((1,), (2,))], label="task")
    for word in ("enough memory", "now 256", HOLDER):
        assert word in str(caught.value)
    assert one.row_tokens == 256

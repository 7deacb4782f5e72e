"""A GPU that fails or is missing, for which the CPU stands: one sentence, and the retry goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation.checkpoints import load
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import (
    GpuFault,
    NotEnoughMemory,
    ScoringError,
)
from evaluation.flow.make import make
from evaluation.flow.targets import SCORE
from evaluation.scoring import choices, gpus, perplexity
from evaluation.scoring.engine import backend
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.generate import Decoding
from evaluation.scoring.engine.gpu import gpu_faults
from evaluation.scoring.gpus import choose_device
from evaluation.settings.computing import Scoring
from tests.workflow.world import World, stored_scores

ILLEGAL = (
    "CUDA error: an illegal memory access was encountered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call"
)


class InductorError(RuntimeError):
    """What torch.compile raises around its causes."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("while it compiles")
        self.inner_exception = cause


@pytest.mark.parametrize(
    ("error", "kind", "word"),
    [
        (torch.AcceleratorError(ILLEGAL), GpuFault, "an illegal memory access"),
        (RuntimeError("CUDNN_STATUS_EXECUTION_FAILED"), GpuFault, "CUDNN"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), NotEnoughMemory, "enough memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when"), NotEnoughMemory, "CUBLAS"),
        (InductorError(torch.OutOfMemoryError("CUDA")), NotEnoughMemory, "enough memory"),
    ],
)
def test_faults_are_a_sentence(error: Exception, kind: type[Exception], word: str) -> None:
    with pytest.raises(kind, match=word) as caught, gpu_faults():
        raise error
    assert "\n" not in str(caught.value)


def dying(*_: Any, **__: Any) -> Any:
    raise torch.AcceleratorError(ILLEGAL)


def late(then: Callable[..., Any]) -> Callable[..., Any]:
    """All passes are made, and the GPU dies as the last results are fetched."""

    def call(*arguments: Any, **named: Any) -> Any:
        then(*arguments, **named)
        return dying()

    return call


@pytest.mark.parametrize(
    ("place", "name", "is_late", "stored"),
    [
        (backend, "load_model", False, 0),
        (perplexity, "score_blocks", True, 0),
        (choices, "score_requests", True, 1),
        (Decoding, "step", False, 2),
    ],
)
def test_the_retry_goes_on_from_the_store(
    world: World, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, is_late: bool, stored: int
) -> None:
    subject = step_subject(world.plans["stage2"], 5)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, late(getattr(place, name)) if is_late else dying)
        with pytest.raises(GpuFault) as caught:
            make(SCORE, subject)
    assert name == "load_model" or "stage2/5: " in str(caught.value)
    assert caught.value.is_final is False  # the checkpoint is not at fault, so a retry is of use
    before = stored_scores(world.results())
    assert len(before) == stored
    assert make(SCORE, subject).error is None
    assert stored_scores(world.results()).items() > before.items()  # not scored a second time


def test_a_model_that_no_gpu_holds_is_refused_with_what_it_needs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (0, 80 * 10**9))
    monkeypatch.setattr(Checkpoint, "parameter_count", 70 * 10**9)
    one = EngineBackend(
        Scoring(device="cpu"), step_subject(world.plans["stage2"], 5).open(), lambda: None
    )
    one.device, one.dtype = "cuda", "bfloat16"
    with pytest.raises(NotEnoughMemory, match=r"5: .* 140\.0 GB in torch.bfloat16, .* 80\.0 GB"):
        _ = one.engine


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't")])
def test_too_little_memory_is_not_the_checkpoints_fault(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(load, "_empty_model", fails)
    with pytest.raises(ScoringError, match=r"stage2/5: .*does not fit into the memory") as raised:
        make(SCORE, step_subject(world.plans["stage2"], 5))
    assert not raised.value.is_final


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch has a GPU here")
def test_a_job_that_was_given_a_gpu_never_runs_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "DRIVER", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(ScoringError, match=r"cannot use a GPU here: .*; .* scoring\.device: cpu"):
        choose_device("auto")
    assert choose_device("cpu") == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert choose_device("auto") == "cpu"
    with pytest.raises(ScoringError, match="cannot use a GPU here"):
        choose_device("cuda")

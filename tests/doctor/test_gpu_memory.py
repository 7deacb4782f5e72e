"""What a model takes of a GPU, for which the CPU stands: what is compiled is kept; results name it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.backends.registry import lookup_backend

from evaluation.checkpoints import load
from evaluation.checkpoints.load import load_model
from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.dependencies.making import make
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.errors import ScoringError
from evaluation.scoring.engine import backend
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.gpu import keep_compiled
from tests.workflow.world import World

GPU = "NVIDIA A100-SXM4-40GB"


def on_cpu(call: Callable[..., Any], **other: Any) -> Callable[..., Any]:
    """The same on the CPU, whatever device it is told, and with other arguments."""
    return lambda *given, **named: call(*given, **{**named, "device": "cpu", **other})


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU for which the CPU stands; nothing is compiled for it."""
    monkeypatch.setattr(backend, "choose_device", lambda asked: "cuda")
    monkeypatch.setattr(backend, "load_model", on_cpu(load_model))
    monkeypatch.setattr(backend, "Engine", on_cpu(Engine, compiler=None))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: GPU)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def score(world: World, step: int) -> Subject:
    subject = step_subject(world.plans["stage2"], step)
    assert make(SCORE, subject).error is None
    return subject


def test_jobs_compile_into_the_shared_cache_and_results_name_the_gpu(
    world: World, gpu: None
) -> None:
    subject = score(world, 5)
    folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    assert folder.is_relative_to(world.folder / "cache/compiled")
    assert f"torch-{torch.__version__}" in folder.name
    assert Path(os.environ["TRITON_CACHE_DIR"]).is_relative_to(folder)
    assert make(COLLECT, subject).error is None
    for name in ("tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json"):
        header = json.loads((subject.folder / name).read_text())
        assert (header["gpu"], header["row_tokens"], header["device"]) == (GPU, [16384], "cuda")


def test_a_folder_that_the_user_has_set_or_that_cannot_be_written_is_left(
    tmp_path: Path, gpu: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    keep_compiled(tmp_path / "file")
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ
    assert "compiled kernels are not stored" in caplog.text
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/mine")
    keep_compiled(tmp_path)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/mine"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1 GiB"
            ),
            r"its weights do not fit one GPU in float32: .*2\.00 GiB.*; give the job a GPU",
        ),
        (
            RuntimeError(
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
            ),
            r"does not fit into the memory that is left for this process \(DefaultCPU.*; give the job",
        ),
        (MemoryError(), r"does not fit into the memory .* \(MemoryError\); give the job more"),
    ],
)
def test_too_little_memory_is_not_the_checkpoints_fault(
    world: World,
    gpu: None,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    said: str,
) -> None:
    """So it is not left out of the results: the job fails, and can be run again."""

    def fails(*_: object) -> None:
        raise error

    world.change(scoring={"dtype": "float32"})
    monkeypatch.setattr(load, "empty_model", fails)
    with pytest.raises(ScoringError, match=f"stage2/5: .*{said}") as raised:
        score(world, 5)
    assert not raised.value.is_final


def test_on_the_cpu_nothing_is_compiled(world: World) -> None:
    score(world, 5)
    assert not (world.folder / "cache/compiled").exists()


def fails(graph, inputs):
    raise RuntimeError("ptxas died")


def is_wrong(graph, inputs):
    """Computes all and gives it back in another order."""
    run = lookup_backend("aot_eager")(graph, inputs)
    return lambda *given: tuple(
        one.flip(-1) if isinstance(one, torch.Tensor) and one.is_floating_point() else one
        for one in run(*given)
    )


FALLBACKS = {
    "fails": (fails, "auto", "cannot be compiled for this GPU (ptxas died)"),
    "is wrong": (is_wrong, "auto", "its own log-probabilities differ"),
    "is not asked": (fails, "off", ""),
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_without_a_compiler_a_job_goes_on_plainly(
    world: World,
    gpu: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    """With the scores of plain passes, one warning with the reason, and results that say so."""
    given, asked, said = FALLBACKS[name]
    torch._dynamo.reset()

    def engine(model, *, row_tokens, device, compiler):
        return Engine(model, row_tokens=512, device="cpu", compiler=compiler and given)

    monkeypatch.setattr(backend, "Engine", engine)
    world.change(scoring={"compile": asked})
    subject = score(world, 5)
    warned = [one.getMessage() for one in caplog.records if "being compiled" in one.getMessage()]
    assert [said in one for one in warned] == [True] * bool(said)
    found = results_of(subject)
    assert {tuple(one["layers"]) for one in found} == {("plain",)}
    monkeypatch.undo()
    world.change(scoring={"device": "cpu"})
    for one, plain in zip(found, results_of(score(world, 5)), strict=True):
        assert "layers" not in plain
        assert numbers(one) == pytest.approx(numbers(plain), rel=1e-5)


def results_of(subject: Subject) -> list[dict[str, Any]]:
    """What is collected of losses and choices."""
    assert make(COLLECT, subject).error is None
    return [
        json.loads((subject.folder / f"{one}.json").read_text())
        for one in ("tier2_ppl", "tier3_cf")
    ]


def numbers(content: dict[str, Any]) -> dict[str, float]:
    """The measures of each slice or task."""
    tables = content.get("slices") or content["tasks"]
    return {
        f"{item}.{key}": value
        for item, table in tables.items()
        for key, value in table.items()
        if isinstance(value, float) and "seconds" not in key
    }

"""What a model takes of a GPU, for which the CPU stands: what is compiled is kept; results name it."""

import json
from collections.abc import Callable
from types import SimpleNamespace
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
from tests.workflow.world import World

GPU = "NVIDIA A100-SXM4-40GB"


def on_cpu(call: Callable[..., Any], **other: Any) -> Callable[..., Any]:
    """The same on the CPU, whatever device it is told, and with other arguments."""
    return lambda *given, **named: call(*given, **{**named, "device": "cpu", **other})


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What PyTorch is given back of compiled kernels; it always has compiled one and the same."""
    taken: list[bytes] = []
    made = (b"kernels", SimpleNamespace(artifacts={"inductor": ["graph"]}))
    monkeypatch.setattr(backend, "choose_device", lambda asked: "cuda")
    monkeypatch.setattr(backend, "load_model", on_cpu(load_model))
    monkeypatch.setattr(backend, "Engine", on_cpu(Engine, compiler=None))
    monkeypatch.setattr(backend, "generate", on_cpu(backend.generate))
    # Not by keyword, as `on_cpu` would give it.
    check = backend.decoding_fault
    monkeypatch.setattr(
        backend, "decoding_fault", lambda model, _, *rest: check(model, "cpu", *rest)
    )
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: GPU)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    monkeypatch.setattr(torch.compiler, "save_cache_artifacts", lambda: made)
    monkeypatch.setattr(
        torch.compiler, "load_cache_artifacts", lambda payload: taken.append(payload) or made[1]
    )
    return taken


def score(world: World, step: int) -> Subject:
    subject = step_subject(world.plans["stage2"], step)
    assert make(SCORE, subject).error is None
    return subject


def test_a_second_job_takes_what_the_first_has_compiled(
    world: World, compiled: list[bytes]
) -> None:
    score(world, 5)
    assert compiled == []
    kept = list((world.folder / "cache/compiled").rglob("*"))
    assert [path.suffix for path in kept if path.is_file()] == [".artifacts"]
    assert kept[0].name.endswith("NVIDIA-A100-SXM4-40GB")
    subject = score(world, 15)
    assert compiled == [b"kernels"]
    assert list((world.folder / "cache/compiled").rglob("*")) == kept
    assert make(COLLECT, subject).error is None
    for name in ("tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json"):
        header = json.loads((subject.folder / name).read_text())
        assert (header["gpu"], header["row_tokens"], header["device"]) == (GPU, [16384], "cuda")


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
    compiled: list[bytes],
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
    """Computes all and gives back a little more."""
    run = lookup_backend("aot_eager")(graph, inputs)
    return lambda *given: tuple(
        one * 1.01 if isinstance(one, torch.Tensor) and one.is_floating_point() else one
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
    compiled: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    """With the scores of plain passes, one warning with the reason, and results that say so."""
    given, asked, said = FALLBACKS[name]
    torch._dynamo.reset()

    def engine(model, row_tokens, device, compiler):
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

"""What a tier's file says of the machines that its scores come from."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluation.checkpoints.subjects import step_subject
from evaluation.grading.header import header
from evaluation.scoring.session import Session
from tests.bridge.folders import make_plans

ABOUT = {
    "checkpoint": "ckpts/10",
    "identity": "abc",
    "tokenizer": {"name": "some/tokenizer"},
    "sequence_length": 64,
    "device": "cuda",
    "dtype": "bfloat16",
}
FIRST = {"gpu": "A100", "row_tokens": 8192}
MACHINES = [
    ("one", [FIRST, FIRST], "A100", [8192]),
    ("two", [{"gpu": "H100", "row_tokens": 16384}, FIRST], "A100 and H100", [8192, 16384]),
    ("a CPU", [{"gpu": None, "row_tokens": 1024}], None, [1024]),
    ("scores that do not know it", [{}, FIRST], "A100", [8192]),
]


@pytest.mark.parametrize(
    ("machines", "gpu", "row_tokens"), [one[1:] for one in MACHINES], ids=[m[0] for m in MACHINES]
)
def test_machines(
    tmp_path: Any, machines: list[dict[str, Any]], gpu: str | None, row_tokens: list[int]
) -> None:
    subject = step_subject(make_plans(tmp_path)["first"], 100)
    summaries = [{"seconds": 1.0, "tokens_processed": 9, "packages": {}, **one} for one in machines]
    top = header(subject, "tier2", ABOUT, summaries, {})
    assert (top["gpu"], top["row_tokens"]) == (gpu, row_tokens)


def test_the_machine_of_a_session(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H100 80GB HBM3")
    plan = make_plans(tmp_path)["first"]
    scoring = plan.config.scoring
    gpu = "NVIDIA H100 80GB HBM3"
    for device, row_tokens, expected in (
        ("cpu", scoring.cpu_row_tokens, {"gpu": None}),
        ("cuda", scoring.row_tokens, {"gpu": gpu, "layers": "compiled"}),
    ):
        backend = SimpleNamespace(device=device, row_tokens=row_tokens, layers="compiled")
        session: Any = SimpleNamespace(plan=plan, backend=backend)
        assert Session.machine(session) == {"row_tokens": row_tokens, **expected}

"""A fixed set of the fuzzer's cases, and what it damages; `python -m tests.checkpoints.fuzz 4000` runs more."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from evaluation.checkpoints import completeness
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.import_hf import import_hf
from evaluation.checkpoints.inspect import describe
from evaluation.checkpoints.load import load_model
from evaluation.prefill.caches import read_slice, read_task
from evaluation.prefill.cloze import prefill_task
from evaluation.prefill.slices import prefill_slice
from evaluation.prefill.tokenizers import (
    encode,
    load_tokenizer,
    tokenizer_fingerprint,
    vocabulary_size,
)
from evaluation.settings.plan import StagePlan
from tests.checkpoints.fuzz import Target, run
from tests.checkpoints.huggingface import SIZES, save_model
from tests.checkpoints.nanotron import llama, make_checkpoint, moe, qwen2
from tests.conftest import SHARED
from tests.prefill.plans import make_plan
from tests.workflow.world import build_tokenizer

TEXT = ["The quick brown fox jumps over the lazy dog.", "Who? A fox, of course!"] * 9

FROM_NANOTRON = (
    *("llama_mup_tp1", "llama_nt05_badnames_tp1"),
    *("qwen2_tp2_numpy1", "llama_traindir_tp2_dp2"),
)


def make_targets(folder: Path) -> list[Target]:
    make_checkpoint(folder / "n" / "7", llama(), tp=2, pp=2)
    make_checkpoint(folder / "m" / "7", qwen2(moe_config=moe(), attention_bias=True), tp=2)
    save_model(folder / "hf", LlamaConfig(**SIZES))
    tokenizer = folder / "tokenizer"
    build_tokenizer(TEXT, tokenizer)
    make_rows(folder / "data")
    plan = prefilled(folder / "data", folder / "cache", tokenizer)

    def prefill(copy: Path) -> None:
        prefilled(copy, copy.parent / "cache", tokenizer)

    found = [
        Target("nanotron", folder / "n" / "7", load, keeps_numbers),
        Target("experts", folder / "m" / "7", load, keeps_numbers),
        Target("huggingface", folder / "hf", load, keeps_numbers),
        Target("import-hf", folder / "hf", imported, keeps_numbers),
        Target("tokenizer", tokenizer, use_tokenizer),
        Target("slice", plan.slice_folder("s"), slice_bytes, always),
        Target("task", plan.task_folder("t"), lambda copy: read_task(copy).items, always),
        Target("data", folder / "data", prefill),
    ]
    fixtures = SHARED / "fixtures/nanotron"
    if fixtures.is_dir():
        found += [Target(name, fixtures / name, load, keeps_numbers) for name in FROM_NANOTRON]
    return found


def make_rows(folder: Path) -> None:
    asked = {"question": "Who?", "choices": ["a fox", "a dog"]}
    rows = [{"text": f"{TEXT[0]} {n}", **asked, "label": n % 2} for n in range(9)]
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def prefilled(data: Path, cache: Path, tokenizer: Path) -> StagePlan:
    """The plan of a slice and a task, both prefilled."""
    files: dict[str, Any] = {"files": (str(data / "train.jsonl"),)}
    task = {"choices": "choices", "gold": "label", "context": "{{ question }}"}
    tasks = {"t": files | task | {"cluster": "{{ text }}"}}
    plan = make_plan(cache, tokenizer, slices={"s": files | {"tokens": 64}}, tasks=tasks)
    prefill_task(plan, "t")
    prefill_slice(plan, "s")
    return plan


def always(_: str) -> bool:
    return True


def keeps_numbers(done: str) -> bool:
    """Damage that leaves every weight and every number as it was, or takes them away."""
    kind, _, file = done.partition(" ")
    return kind in ("cut", "double", "empty", "remove", "pipe", "folder", "link") or (
        kind == "values" and file.endswith(".safetensors")
    )


def load(copy: Path) -> bytes:
    """Logits of the checkpoint, which must be complete and described in JSON."""
    checkpoint = open_checkpoint(copy)
    check_complete(checkpoint)
    json.dumps(describe(checkpoint)).encode()
    model = load_model(checkpoint, dtype=torch.float32)
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([[3, 17, 42, 5, 9]])).logits
    return logits.numpy().tobytes()


def imported(copy: Path) -> bytes:
    with tempfile.TemporaryDirectory() as target:
        return load(import_hf(copy, Path(target)))


def slice_bytes(copy: Path) -> bytes:
    return read_slice(copy).tokens.numpy().tobytes()


def use_tokenizer(copy: Path) -> None:
    tokenizer = load_tokenizer(copy, use_fast=True)
    tokenizer_fingerprint(tokenizer)
    vocabulary_size(tokenizer)
    encode(tokenizer, TEXT[:2])


@pytest.mark.filterwarnings("ignore")
def test_damage_gives_the_right_answer_or_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completeness, "FRESH_SECONDS", 0.0)
    counts, findings = run(make_targets(tmp_path), 120, seed=0)
    assert findings == []
    assert counts["one sentence"] > 70
    assert counts["of these compared"] > 1

"""Tier2 slices from local data: what is written, when it is written again, and what is refused."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluation import errors
from evaluation.prefill.caches import SliceCache, read_slice
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from evaluation.tokenizers.loading import load_tokenizer
from tests.prefill.plans import make_plan
from tests.tables import cases
from tests.workflow.world import write_rows

DOCUMENTS = [f"Document {number}: naïve 日本語 and the lazy dog." for number in range(12)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    rows = [{"text": text, "part": [text[:8], 1], "broken": "a\ud800"} for text in DOCUMENTS]
    write_rows(path, rows)
    return path


def plan_for(data: Path, tokenizer: Path, *, prepend_bos: bool = False, **keys: Any) -> StagePlan:
    slices = {"s": {"files": (str(data),), "tokens": 160} | keys}
    return make_plan(data.parent / "cache", tokenizer, slices=slices, prepend_bos=prepend_bos)


def made(plan: StagePlan) -> tuple[SliceCache, str]:
    """A slice that was prefilled, and its text."""
    PREFILLS["tier2"].make(plan, "s")
    cache = read_slice(plan.cache_folder("tier2", "s"))
    tokenizer = load_tokenizer(plan.tokenizer_folder, use_fast=True)
    return cache, str(tokenizer.decode(cache.tokens.reshape(-1)))


def test_a_slice_is_its_documents(data: Path, fast_folder: Path) -> None:
    cache, text = made(plan_for(data, fast_folder))
    assert "</s>".join(DOCUMENTS).startswith(text)
    assert cache.tokens.shape == (10, 16)
    assert cache.tokens.dtype == torch.uint16
    tokenizer = load_tokenizer(fast_folder, use_fast=True)
    flat = cache.tokens.reshape(-1).tolist()
    starts = [at + 1 for at, token in enumerate(flat[:-1]) if token == tokenizer.eos_token_id]
    assert cache.document_starts.tolist() == [0, *starts]
    for block, size in zip(cache.tokens, cache.block_bytes, strict=True):
        ids = [token for token in block[1:].tolist() if token != tokenizer.eos_token_id]
        pieces = {number: piece for piece, number in tokenizer.vocabulary.items()}
        assert (
            abs(sum(len(pieces[one]) for one in ids) - int(size)) <= 2
        )  # a character may lie on the border
    meta = cache.meta
    assert meta["documents"] == len(cache.document_starts)
    assert meta["bytes"] == int(cache.block_bytes.sum())
    assert meta["items"] == {"asked": 10, "used": 10, "left_out": {}}
    assert meta["vocab_size_needed"] == len(tokenizer.vocabulary)
    ((path, size, *_),) = meta["source"]["state"][0]["files"]
    assert (path, size) == (data.name, data.stat().st_size)


def test_the_first_documents_are_skipped(data: Path, fast_folder: Path) -> None:
    cache, text = made(plan_for(data, fast_folder, skip_documents=4, tokens=64, prepend_bos=True))
    assert text.startswith("<s>" + "</s><s>".join(DOCUMENTS[4:])[: len(text) - 3])
    assert cache.meta["documents_skipped"] == 4


@pytest.mark.parametrize(("keys", "error", "message"), cases("prefill/odd", "slices"))
def test_what_makes_no_slice_is_named(
    keys: dict[str, Any], error: str, message: str, data: Path, fast_folder: Path
) -> None:
    with pytest.raises(getattr(errors, error), match=message):
        PREFILLS["tier2"].make(plan_for(data, fast_folder, **keys), "s")


def _prefill_at_once(plan: StagePlan, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    PREFILLS["tier2"].make(plan, "s")


def test_two_at_once_agree(data: Path, fast_folder: Path) -> None:
    plan = plan_for(data, fast_folder)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    running = [context.Process(target=_prefill_at_once, args=(plan, barrier)) for _ in range(2)]
    for process in running:
        process.start()
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0, 0]
    assert read_slice(plan.cache_folder("tier2", "s")).meta["blocks"] == 10
    assert [path.name for path in plan.cache_folder("tier2", "s").parent.iterdir()] == ["s"]
    assert sorted(path.name for path in plan.cache.iterdir()) == ["ppl_slices", "tokenizer"]

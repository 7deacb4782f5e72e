"""A tokenizer by another path, or a copy of it, has nothing prefilled twice; another tokenizer has all."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluation.prefill import cloze, generation, prompts, slices
from evaluation.prefill.entries import read_meta
from evaluation.prefill.tiers import PREFILLS
from evaluation.prefill.window import Window
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TierName
from tests.prefill.plans import make_plan
from tests.workflow.world import write_rows

ENTRIES: dict[TierName, str] = {"tier2": "s", "tier3": "t", "tier4": "s", "tier5": "g"}


@pytest.fixture(autouse=True)
def no_golds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Golds are checked in other processes, which would count as connections."""
    for name in ("check_golds", "check_cached_golds"):
        monkeypatch.setattr(generation, name, lambda *_, **__: None)


def plan_with(folder: Path, tokenizer: Path, **more: Any) -> StagePlan:
    files = (str(folder / "rows.jsonl"),)
    write_rows(folder / "rows.jsonl", [{"q": f"the dog number {n}", "a": str(n)} for n in range(9)])
    task = {
        "files": files,
        "context": "{{ q }}",
        "choices": "['x', 'y']",
        "gold": "0",
        "primary": "raw",
    }
    generated = {
        "files": files,
        "prompt": "{{ q }}",
        "chat": False,
        "max_new_tokens": 4,
        "document": {"gold": "a"},
        "verifiers": {"v": {"kind": "pattern", "pattern": r"\d"}},
        "stop": ["."],
    }
    probe = {
        "messages": [{"role": "user", "content": "the dog"}],
        "category": "c",
        "max_new_tokens": 4,
        "checks": [{"check": "no_chat_artifacts"}],
    }
    return make_plan(
        folder / "cache",
        tokenizer,
        sequence_length=32,
        chat_template="{% for turn in messages %}{{ turn.content }}{% endfor %}",
        probes={"p": probe},
        slices={"s": {"files": files, "text": "q", "tokens": 64}},
        tasks={"t": task},
        generation_tasks={"g": generated},
        **more,
    )


def prefill(plan: StagePlan) -> dict[str, bytes]:
    """Makes all entries; their files but meta.json."""
    found = dict[str, bytes]()
    for tier, name in ENTRIES.items():
        PREFILLS[tier].make(plan, name)
        folder = plan.cache_folder(tier, name)
        names = read_meta(folder)["checksum"]
        found |= {f"{tier}/{file}": (folder / file).read_bytes() for file in names}
    return found


def no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, making an entry from data fails."""
    makers = (
        (slices, "_build"),
        (cloze, "read_questions"),
        (prompts, "_probe_rows"),
        (generation, "_read"),
    )
    for module, function in makers:
        monkeypatch.setattr(module, function, None)


def test_a_copy_of_a_tokenizer(
    tmp_path: Path, fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan_with(tmp_path, fast_folder)
    made = prefill(first)
    shutil.copytree(fast_folder, tmp_path / "copy")
    second = plan_with(tmp_path, tmp_path / "copy")
    assert second.cache != first.cache
    with monkeypatch.context() as patch:
        no_more(patch)
        assert prefill(second) == made
        patch.chdir(tmp_path)
        assert prefill(plan_with(tmp_path, Path("./copy"))) == made
    for tier, name in ENTRIES.items():
        ours, theirs = second.cache_folder(tier, name), first.cache_folder(tier, name)
        assert read_meta(ours)["tokenizer"]["name"] == str(tmp_path / "copy")
        assert read_meta(ours)["checksum"] == read_meta(theirs)["checksum"]
        file = next(iter(read_meta(ours)["checksum"]))
        assert os.path.samefile(ours / file, theirs / file)
        assert PREFILLS[tier].read(ours).meta == read_meta(ours)


@pytest.mark.parametrize(
    "change", ["vocabulary", "begins with BOS", "data", "suite", "damaged", "window"]
)
def test_what_differs_is_made_again(
    change: str, tmp_path: Path, fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan_with(tmp_path, fast_folder)
    prefill(first)
    copy = tmp_path / "copy"
    shutil.copytree(fast_folder, copy)
    plan = plan_with(tmp_path, copy)
    if change == "vocabulary":
        content = json.loads((copy / "tokenizer.json").read_text())
        content["added_tokens"].append({**content["added_tokens"][0], "id": 401, "content": "dog"})
        (copy / "tokenizer.json").write_text(json.dumps(content))
    elif change == "begins with BOS":
        plan = plan_with(tmp_path, copy, prepend_bos=True)
    elif change == "data":
        rows = tmp_path / "rows.jsonl"
        rows.write_text(rows.read_text().replace("dog", "fox"))
    elif change == "suite":
        plan.suite.tasks["t"] = plan.suite.tasks["t"].model_copy(update={"context": "Q {{ q }}"})
    elif change == "damaged":
        for tier, name in ENTRIES.items():
            for path in filter(Path.is_file, first.cache_folder(tier, name).iterdir()):
                path.write_bytes(b"x")
    elif change == "window":
        for module in (generation, prompts):
            monkeypatch.setattr(module, "generation_window", lambda plan: Window(60, 30))
    no_more(monkeypatch)
    remade = {
        "suite": ["tier3"],
        "window": ["tier4", "tier5"],
        "data": ["tier2", "tier3", "tier5"],
    }.get(change, list(ENTRIES))
    for tier, name in ENTRIES.items():
        if tier in remade:
            with pytest.raises(TypeError, match="'NoneType' object is not callable"):
                PREFILLS[tier].make(plan, name)
        else:
            PREFILLS[tier].make(plan, name)


def test_it_is_copied_where_it_cannot_be_linked(
    tmp_path: Path, fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prefill(plan_with(tmp_path, fast_folder))
    shutil.copytree(fast_folder, tmp_path / "copy")
    no_more(monkeypatch)

    def refuse(*paths: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    assert prefill(plan_with(tmp_path, tmp_path / "copy")) == made

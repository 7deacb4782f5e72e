"""Readers refuse whatever is not exactly what prefill wrote, and say what to do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.errors import CacheError
from evaluation.prefill.cloze import prefill_task
from evaluation.prefill.entries import STEP
from evaluation.prefill.tiers import PREFILLS
from evaluation.records import record_path
from evaluation.settings.plan import StagePlan
from tests.prefill.plans import make_plan
from tests.workflow.world import write_rows

REMEDY = "snakemake prefill"

PROBE = {
    "category": "chat",
    "messages": [{"role": "user", "content": "Who?"}],
    "checks": [{"check": "no_chat_artifacts"}],
    "max_new_tokens": 9,
}

Read = Callable[[Path], object]


def plan_of(tmp_path: Path, tokenizer: Path) -> StagePlan:
    row = {"text": "The quick brown fox " * 27, "choices": ["a fox", "a dog"], "label": 1}
    write_rows(tmp_path / "rows.jsonl", [row])
    files = {"files": (str(tmp_path / "rows.jsonl"),)}
    return make_plan(
        tmp_path / "cache",
        tokenizer,
        slices={"s": files | {"tokens": 64}},
        tasks={"t": files | {"choices": "choices", "gold": "label", "context": "Who?"}},
        probes={"one": PROBE},
        chat_template="{{ messages[0].content }}",
    )


@pytest.fixture(params=[("tier2", "s"), ("tier3", "t"), ("tier4", "s")], ids=lambda key: key[0])
def entry(request: pytest.FixtureRequest, tmp_path: Path, fast_folder: Path) -> tuple[Path, Read]:
    plan, (tier, name) = plan_of(tmp_path, fast_folder), request.param
    PREFILLS[tier].make(plan, name)
    return plan.cache_folder(tier, name), PREFILLS[tier].read


def test_nothing_prefilled(entry: tuple[Path, Read], tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=f"none is not prefilled.*{REMEDY}"):
        entry[1](tmp_path / "none")


def test_each_file_that_is_not_whole_is_noticed(entry: tuple[Path, Read]) -> None:
    folder, read = entry
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        whole = path.read_bytes()
        flips = [
            bytes([*whole[:at], whole[at] ^ 1]) + whole[at + 1 :] for at in (0, len(whole) // 2)
        ]
        for content in [*flips, b"", whole[: len(whole) // 2]]:
            path.write_bytes(content)
            with pytest.raises(CacheError, match=f"{path.name} is damaged.*delete.*{REMEDY}"):
                read(folder)
        path.unlink()
        with pytest.raises(CacheError, match=REMEDY):
            read(folder)
        path.write_bytes(whole)
    assert read(folder) is not None


def test_an_edited_meta_is_noticed(entry: tuple[Path, Read]) -> None:
    folder, read = entry
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"items": 5}))
    with pytest.raises(CacheError, match=r"meta\.json is damaged: it was changed after"):
        read(folder)


@pytest.fixture
def task(tmp_path: Path, fast_folder: Path) -> StagePlan:
    plan = plan_of(tmp_path, fast_folder)
    prefill_task(plan, "t")
    return plan


def test_a_record_that_says_something_else_than_its_entry_is_written_again(task: StagePlan) -> None:
    """One digit of a file's name is another in the record: runs would call the entry outdated for ever."""
    path = record_path(task.cache_folder("tier3", "t"), STEP)
    before = path.read_text()
    path.write_text(before.replace("rows.jsonl", "sows.jsonl"))
    assert path.read_text() != before
    prefill_task(task, "t")
    assert path.read_text() == before

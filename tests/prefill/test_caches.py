"""Readers refuse whatever is not exactly what prefill wrote, and say what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import CacheError
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from tests.prefill.plans import make_plan
from tests.workflow.world import write_rows

PROBE: dict[str, Any] = {
    "category": "chat",
    "messages": [{"role": "user", "content": "Who?"}],
    "checks": [{"check": "no_chat_artifacts"}],
    "max_new_tokens": 9,
}


@pytest.fixture
def plan(tmp_path: Path, fast_folder: Path) -> StagePlan:
    row = {"text": "The quick brown fox " * 27, "choices": ["a fox", "a dog"], "label": 1}
    write_rows(tmp_path / "rows.jsonl", [row])
    files = {"files": (str(tmp_path / "rows.jsonl"),)}
    return make_plan(
        tmp_path / "cache",
        fast_folder,
        slices={"s": files | {"tokens": 64}},
        tasks={"t": files | {"choices": "choices", "gold": "label", "context": "Who?"}},
        probes={"one": PROBE},
        chat_template="{{ messages[0].content }}",
    )


@pytest.mark.parametrize(("tier", "name"), [("tier2", "s"), ("tier3", "t"), ("tier4", "s")])
def test_each_file_that_is_not_whole_is_noticed(plan: StagePlan, tier: str, name: str) -> None:
    PREFILLS[tier].make(plan, name)
    folder, read = plan.cache_folder(tier, name), PREFILLS[tier].read
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        whole = path.read_bytes()
        middle = len(whole) // 2
        flipped = bytes([*whole[:middle], whole[middle] ^ 1]) + whole[middle + 1 :]
        for content in (flipped, b"", whole[:middle]):
            path.write_bytes(content)
            with pytest.raises(CacheError, match=rf"{path.name} is damaged.*delete.*prefill"):
                read(folder)
        path.unlink()
        with pytest.raises(CacheError, match="snakemake prefill"):
            read(folder)
        path.write_bytes(whole)
    assert read(folder) is not None
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"items": 5}))
    with pytest.raises(CacheError, match=r"meta\.json is damaged: it was changed after"):
        read(folder)


def test_two_prefills_give_identical_bytes(plan: StagePlan) -> None:
    names = [("tier2", "s"), ("tier3", "t"), ("tier4", "s")]
    contents = []
    for _ in range(2):
        for tier, name in names:
            PREFILLS[tier].make(plan, name)
        files = sorted(path for path in plan.cache.rglob("*") if path.is_file())
        contents.append({path: path.read_bytes() for path in files})
        for tier, name in names:
            plan.cache_folder(tier, name).rename(plan.cache.parent / f"{len(contents)}{tier}")
    assert contents[0] == contents[1]

"""Mirrors that a provider reads: what it read is recorded, and looked at again."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest

from evaluation.errors import SourceError
from evaluation.flow.caches import CacheEntry, Caches
from evaluation.prefill.tiers import PREFILLS
from evaluation.providers.adapters.contract import read_mirrors
from evaluation.settings.plan import StagePlan
from tests.prefill.test_sources import ROWS, jsonl, parquet, saved_dict
from tests.providers.conftest import Installed
from tests.workflow.world import World, want_answers


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    datasets.disable_progress_bars()
    monkeypatch.chdir(tmp_path_factory.mktemp("program"))
    monkeypatch.setattr(datasets, "load_dataset", datasets.load_dataset)


LAYOUTS: dict[str, Callable[[Path], object]] = {
    "a file a split": lambda root: [
        parquet(root / "c/test.parquet"),
        parquet(root / "c/train.parquet", ROWS[:1]),
    ],
    "shards": lambda root: [
        jsonl(root / f"c/data/test-0000{n}-of-00002.jsonl", ROWS[n:]) for n in (0, 1)
    ],
    "packed": lambda root: jsonl(root / "c/test.jsonl.gz"),
    "saved": lambda root: saved_dict(root / "c"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_read_is_recorded(layout: str, tmp_path: Path) -> None:
    LAYOUTS[layout](tmp_path)
    record = read_mirrors({"a/b": str(tmp_path)})
    for _ in range(2):
        assert datasets.load_dataset("a/b", "c", split="test")[0] == ROWS[0]
    splits = datasets.load_dataset("a/b", "c").filter(lambda row: row["label"] > 0)
    assert splits["test"][0] == ROWS[1]
    assert record["datasets"] == {"a/b": str(tmp_path)}
    assert record["read"] == [["a/b", "c", "test"]] * 3
    with pytest.raises(SourceError, match="no split 'none' of configuration 'd'"):
        datasets.load_dataset("a/b", "d", split="none")


def test_the_hub_is_read_at_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def about(_: Any, path: str, *, revision: str | None) -> Any:
        return SimpleNamespace(sha=f"{path} at {revision}")

    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", about)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **more: asked.append(more))
    record = read_mirrors({})
    datasets.load_dataset("a/b", "c", revision="v")
    assert asked == [{"split": None, "revision": "a/b at v"}]
    assert record["datasets"] == {"a/b": "hub@a/b at v"}


def test_a_mirror_that_a_provider_read_is_looked_at(
    world: World, installed: Installed, tmp_path: Path
) -> None:
    def planned(root: Path) -> StagePlan:
        python = str(installed(meta={"read": [["a/b", None, "test"]]}))
        task: Any = {"provider": "lm_eval", "task": "sums"}
        mirrors = {"a/b": str(root)}
        return want_answers(world, {"sums": task}, providers={"lm_eval": python}, mirrors=mirrors)

    def state(plan: StagePlan) -> str:
        folder = plan.cache_folder("tier5", "sums")
        entry = CacheEntry(plan, "tier5", "sums", folder)
        return "stale" if Caches().entry_problem(entry) else "current"

    parquet(tmp_path / "mirror/test.parquet")
    plan = planned(tmp_path / "mirror")
    PREFILLS["tier5"].make(plan, "sums")
    assert state(plan) == "current"
    parquet(tmp_path / "other/test.parquet", ROWS[:2])
    assert state(planned(tmp_path / "other")) == "stale"
    assert state(planned(tmp_path / "none")) == "current"  # it cannot be seen here
    (tmp_path / "mirror/test.parquet").touch()
    assert state(plan) == "stale"

"""Mirrors that a provider reads: what it read is recorded, kept, and looked at again."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest

from evaluation.dependencies.caches import CacheEntry, CacheStates
from evaluation.errors import SourceError
from evaluation.prefill.tiers import PREFILLS
from evaluation.providers.adapters.contract import RefusedTask
from evaluation.providers.adapters.mirror_files import read_mirrors, status_of
from evaluation.settings.plan import StagePlan
from tests.prefill.test_sources import ROWS, jsonl, parquet, saved_dict
from tests.providers.conftest import Installed
from tests.workflow.world import World, want_answers


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    datasets.disable_progress_bars()
    monkeypatch.chdir(tmp_path_factory.mktemp("program"))
    monkeypatch.setattr(datasets, "load_dataset", datasets.load_dataset)


def packed(path: Path) -> None:
    """One JSON array, as datasets are often published, or JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, ROWS)) if "jsonl" in path.name else json.dumps(ROWS)
    with pa.output_stream(str(path), compression="detect") as file:
        file.write(text.encode())


LAYOUTS: dict[str, tuple[Callable[[Path], object], str | None, list[str]]] = {
    "a file a split": (
        lambda root: [
            parquet(root / "c/test.parquet"),
            parquet(root / "c/train.parquet", ROWS[:1]),
        ],
        "c",
        ["test.parquet", "train.parquet"],
    ),
    "shards in data/": (
        lambda root: [jsonl(root / f"data/test-0000{n}-of-00002.jsonl", ROWS[n:]) for n in (0, 1)],
        None,
        ["test-00000-of-00002.jsonl", "test-00001-of-00002.jsonl"],
    ),
    "the only folder": (lambda root: parquet(root / "main/test.parquet"), None, ["test.parquet"]),
    "packed": (
        lambda root: [packed(root / "c/test.jsonl.gz"), packed(root / "c/train.json.gz")],
        "c",
        ["test.jsonl.gz", "train.json.gz"],
    ),
    "saved": (lambda root: saved_dict(root / "c"), "c", ["dataset_dict.json", "state.json"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_read_is_recorded(layout: str, tmp_path: Path) -> None:
    write, config, names = LAYOUTS[layout]
    write(tmp_path)
    record = read_mirrors({"a/b": str(tmp_path)})
    for _ in range(2):
        assert datasets.load_dataset("a/b", config, split="test")[0] == ROWS[0]
    assert record["datasets"] == {"a/b": str(tmp_path)}
    (read,) = record["read"]
    assert (read["dataset"], read["config"]) == ("a/b", config)
    assert set(names) <= {Path(path).name for path, _ in read["files"]}
    assert all(status_of(Path(path)) == status for path, status in read["files"])


@pytest.mark.parametrize(
    ("names", "config", "said"),
    [
        ([], "c", r"has no configuration 'c'; put its splits at .*/c/<split>"),
        (["train.parquet"], None, "has no split 'test', only train; add it"),
        (
            ["test-00000-of-00002.parquet", "test-00000-of-00001.parquet"],
            None,
            "test-00000-of-00001.*test-00000-of-00002.* are not all parts of one copy",
        ),
        (["test-00001-of-00002.parquet"], None, "are not all parts of one copy"),
        (["test.parquet", "data/test.parquet"], None, "are not all parts of one copy"),
    ],
)
def test_what_a_mirror_lacks_or_has_twice_is_refused(
    names: list[str], config: str | None, said: str, tmp_path: Path
) -> None:
    for name in names:
        parquet(tmp_path / name)
    read_mirrors({"a/b": str(tmp_path)})
    with pytest.raises(RefusedTask, match=said):
        datasets.load_dataset("a/b", config, split="test")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    parquet(tmp_path / "mirror/test.parquet")
    return tmp_path / "mirror"


@pytest.fixture
def planned(world: World, installed: Installed, root: Path) -> Callable[..., StagePlan]:
    """A plan whose task is a provider's, which tells of the mirror as it was by then."""
    file = root / "test.parquet"
    mirrored: list[Any] = [[str(file), status_of(file)]]

    def plan(files: Any = mirrored, **mirrors: str) -> StagePlan:
        read = [{"dataset": "a/b", "config": None, "files": files}]
        python = str(installed(meta={"read": read}))
        task = {"provider": "lm_eval", "task": "sums"}
        return want_answers(world, {"sums": task}, providers={"lm_eval": python}, mirrors=mirrors)

    return plan


def state(plan: StagePlan) -> str:
    return CacheStates().state(
        CacheEntry(plan, "tier5", "sums", plan.cache_folder("tier5", "sums"))
    )


def test_a_mirror_that_a_provider_read_is_looked_at(
    planned: Callable[..., StagePlan], root: Path, tmp_path: Path
) -> None:
    plan = planned(**{"a/b": str(root)})
    PREFILLS["tier5"].make(plan, "sums")
    file = root / "test.parquet"
    file.touch()
    assert state(plan) == "current"
    parquet(tmp_path / "other/test.parquet", ROWS[::-1])
    assert state(planned(**{"a/b": str(tmp_path / "other")})) == "stale"
    assert state(planned(**{"a/b": str(tmp_path / "none")})) == "current"  # it cannot be seen here
    os.replace(tmp_path / "other/test.parquet", file)
    assert state(plan) == "stale"


def test_what_changes_while_a_provider_reads_is_not_kept(
    planned: Callable[..., StagePlan], root: Path
) -> None:
    plan = planned(**{"a/b": str(root)})
    (root / "test.parquet").touch()
    with pytest.raises(SourceError, match=r"test\.parquet was changed while it was read"):
        PREFILLS["tier5"].make(plan, "sums")
    assert not plan.cache_folder("tier5", "sums").exists()


def test_task_files_of_the_users_own_are_looked_at(
    world: World, installed: Installed, tmp_path: Path
) -> None:
    file = tmp_path / "tasks/sums.yaml"
    file.parent.mkdir()
    file.write_text("task: sums")
    task = {"provider": "lm_eval", "task": "sums", "include_path": str(file.parent)}
    plan = want_answers(world, {"sums": task}, providers={"lm_eval": str(installed())})
    PREFILLS["tier5"].make(plan, "sums")
    file.touch()
    (file.parent / ".hidden").touch()
    assert state(plan) == "current"
    (file.parent / "utils.py").touch()
    assert state(plan) == "stale"
    (file.parent / "utils.py").unlink()
    file.write_text("task: mums")
    assert state(plan) == "stale"

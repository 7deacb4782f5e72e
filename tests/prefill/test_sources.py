"""Every layout of a mirror gives the rows that the hub would give, or a refusal that names files."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets.exceptions import DatasetNotFoundError

from evaluation.errors import SourceError
from evaluation.prefill.sources import hub_commit, locate, locate_item
from evaluation.settings.config import validate_config
from evaluation.settings.sources import Slice, Source
from tests.tables import cases

ROWS = [{"text": f"text {number} é\n", "label": number} for number in range(5)]


def parquet(path: Path, rows: list[dict[str, object]] = ROWS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def jsonl(path: Path, rows: list[dict[str, object]] = ROWS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if path.suffix == ".gz":
        content = gzip.compress(content[:40]) + gzip.compress(content[40:])
    elif path.suffix == ".zst":
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write(content)
        return
    path.write_bytes(content)


def saved_dict(folder: Path) -> None:
    parts = {"train": ROWS[:1], "test": ROWS}
    made = {name: datasets.Dataset.from_list(rows) for name, rows in parts.items()}
    datasets.DatasetDict(made).save_to_disk(folder)


def mirrored(place: Path, **keys: Any) -> list[dict[str, Any]]:
    """All rows of the test split of a mirror, or of what the keys name."""
    source = Source(**{"dataset": "a/b", "split": "test"} | keys)
    return list(locate(source, {"a/b": str(place)}).rows())


LAYOUTS: dict[str, Callable[[Path], object]] = {
    "a file of the split": lambda root: parquet(root / "c/test.parquet"),
    "shards": lambda root: [
        parquet(root / "c/test-00000-of-00002.parquet", ROWS[:2]),
        parquet(root / "c/test-00001-of-00002.parquet", ROWS[2:]),
        parquet(root / "c/test_hard-00000-of-00001.parquet", ROWS[:1]),
        parquet(root / "c/train-00000-of-00001.parquet", ROWS[:1]),
    ],
    "a folder of the split": lambda root: [
        parquet(root / "c/test/0000.parquet", ROWS[:3]),
        parquet(root / "c/test/0001.parquet", ROWS[3:]),
    ],
    "a shard with its hash": lambda root: [
        parquet(root / "c/data/test-00000-of-00001-0123456789abcdef.parquet"),
        parquet(root / "c/data/train-00000-of-00001-0123456789abcdef.parquet", ROWS[:1]),
    ],
    "in data/": lambda root: jsonl(root / "c/data/test.jsonl"),
    "lines in .json": lambda root: jsonl(root / "c/test.00000-of-00001.json"),
    "packed lines": lambda root: jsonl(root / "c/test.json.gz"),
    "lines packed by zstd": lambda root: jsonl(root / "c/test.jsonl.zst"),
    "an array": lambda root: [
        (root / "c").mkdir(parents=True),
        (root / "c/test.json").write_text(json.dumps(ROWS)),
    ],
    "saved splits": lambda root: saved_dict(root / "c"),
    "a saved split": lambda root: datasets.Dataset.from_list(ROWS).save_to_disk(root / "c/test"),
    "a saved dataset": lambda root: datasets.Dataset.from_list(ROWS).save_to_disk(root / "c"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, tmp_path: Path) -> None:
    datasets.disable_progress_bars()
    LAYOUTS[layout](tmp_path / "m/a/b")
    for mirrors in ({"a/b": str(tmp_path / "m/a/b")}, {"*": str(tmp_path / "m")}):
        for config in ("c", None):
            split = locate(Source(dataset="a/b", config=config, split="test"), mirrors)
            assert list(split.rows()) == ROWS


@pytest.mark.parametrize(("files", "message"), cases("prefill/odd", "unclear_splits"))
def test_what_is_not_clear_is_refused(files: list[str], message: str, tmp_path: Path) -> None:
    for file in files:
        (jsonl if file.endswith("jsonl") else parquet)(tmp_path / file)
    with pytest.raises(SourceError, match=message):
        mirrored(tmp_path)
    some = [file for file in files if file.endswith("parquet")][:1] or files[:1]
    assert mirrored(tmp_path, data_files=some) == ROWS


def test_files_that_name_no_split_are_training_data(tmp_path: Path) -> None:
    jsonl(tmp_path / "file-000000000001.json.gz")
    assert mirrored(tmp_path, split="train") == ROWS
    with pytest.raises(SourceError, match=r"no split 'test'; there is file-000000000001\.json\.gz"):
        mirrored(tmp_path)


@pytest.mark.parametrize(("keys", "message"), cases("prefill/odd", "sources"))
def test_what_cannot_be_located_is_named(
    keys: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "m/c/test.parquet")
    for file in ("a.txt", "x.csv"):
        (tmp_path / file).write_text("a,b")
    (tmp_path / "b.txt").symlink_to("a.txt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=message):
        locate(Source(**keys), {"a/b": "m", "g/h": str(tmp_path / "gone")})


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.txt", "a.jsonl.gz"])
def test_a_pointer_of_git_lfs_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid 4\nsize 9\n")
    with pytest.raises(SourceError, match=rf"{name}: a pointer of Git LFS.*run `git lfs pull`"):
        mirrored(tmp_path / name)


def test_files_are_looked_for_beside_the_configuration_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, here = tmp_path / "config", tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    stages = {"s": {"checkpoints": "n", "steps": [1], "suites": ["x"]}}
    content = {"results": "r", "cache": "c", "stages": stages}
    beside.mkdir()
    config = validate_config(content, "test", [beside / "config.yaml"])
    source = Slice(files=("data/*.jsonl",))
    with pytest.raises(SourceError) as caught:
        locate_item(source, config)
    assert all(f"{folder}/data/*.jsonl" in str(caught.value) for folder in (beside, here))
    for folder, rows in ((here, ROWS[:1]), (beside, ROWS[1:])):
        jsonl(folder / "data/a.jsonl", rows)
        assert list(locate_item(source, config)[0][0].rows()) == rows


def test_text_files_are_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one é\r\ntwo\n".encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"three"))
    source = Source(files=(str(tmp_path / "*.txt*"),))
    assert [row["text"] for row in locate(source, {}).rows()] == ["one é\r\ntwo\n", "three"]


COMMIT = "c" * 40


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A hub with a dataset of one commit; all that is asked of it."""
    calls: list[dict[str, Any]] = []

    def load(path: str, name: str | None, **options: Any) -> Any:
        calls.append({"path": path, "name": name, **options})
        return datasets.Dataset.from_list(ROWS).to_iterable_dataset()

    def about(_: Any, name: str, revision: str | None) -> Any:
        calls.append({"path": name, "revision": revision})
        return SimpleNamespace(sha=COMMIT)

    hub_commit.cache_clear()
    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", about)
    return calls


def test_rows_are_those_of_the_commit_that_is_recorded(hub: list[dict[str, Any]]) -> None:
    asked: dict[str, Any] = {"config": "c", "split": "s", "streaming": True}
    source = Source(dataset="a/b", data_files=("x.jsonl",), revision="r", **asked)
    split = locate(source, {"*": "."})
    assert list(split.rows()) == ROWS
    assert (split.commit, split.files) == (COMMIT, None)
    expected = {"path": "a/b", "name": "c", "split": "s", "revision": COMMIT, "streaming": True}
    assert hub == [
        {"path": "a/b", "revision": "r"},
        expected | {"data_files": {"s": ["x.jsonl"]}},
    ]


HUB_ERRORS: list[tuple[Exception, type[Exception], str]] = [
    (DatasetNotFoundError("'a/b' is a gated dataset."), SourceError, "hf auth login"),
    (ConnectionError("Couldn't reach 'a/b'"), SourceError, r"mirrors: \{a/b: …\}"),
    (ValueError("Available: ['d']"), SourceError, r"Available: \['d'\]"),
    (OSError(28, "No space left"), OSError, "No space"),  # neither is the hub's fault
    (AttributeError("x"), AttributeError, "x"),
]


@pytest.mark.parametrize(("error", "seen", "message"), HUB_ERRORS)
@pytest.mark.usefixtures("hub")
def test_the_hubs_errors_are_one_sentence_and_others_are_not_its(
    error: Exception, seen: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(seen, match=message) as caught:
        list(locate(Source(dataset="a/b"), {}).rows())
    assert "\n" not in str(caught.value)


def test_without_the_hub_no_older_commit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    hub_commit.cache_clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(SourceError, match="cannot be loaded from the hub"):
        list(locate(Source(dataset="a/b", revision=COMMIT), {}).rows())

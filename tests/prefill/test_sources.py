"""Every layout of a mirror gives the same rows; the hub gives them, or refuses in a sentence."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets.exceptions import DatasetNotFoundError

from evaluation.errors import SourceError
from evaluation.prefill import files
from evaluation.prefill.hub_commits import note_commit
from evaluation.prefill.sources import locate, locate_item
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
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


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
        parquet(root / "c/train-00000-of-00001.parquet", ROWS[:1]),
    ],
    "a folder of the split": lambda root: [
        parquet(root / "c/test/0000.parquet", ROWS[:3]),
        parquet(root / "c/test/0001.parquet", ROWS[3:]),
    ],
    "a numbered file": lambda root: parquet(root / "c/test0.parquet"),
    "in data/": lambda root: jsonl(root / "c/data/test.jsonl"),
    "lines": lambda root: jsonl(root / "c/test.jsonl"),
    "lines in .json": lambda root: jsonl(root / "c/x-test.00000-of-00001.json"),
    "packed lines": lambda root: jsonl(root / "c/test.json.gz"),
    "an array": lambda root: [
        (root / "c").mkdir(parents=True),
        (root / "c/test.json").write_text(json.dumps(ROWS)),
    ],
    "saved splits": lambda root: saved_dict(root / "c"),
    "a saved split": lambda root: datasets.Dataset.from_list(ROWS).save_to_disk(root / "c/test"),
    "a saved dataset": lambda root: datasets.Dataset.from_list(ROWS).save_to_disk(root / "c"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("by", ["id", "root"])
def test_layouts(layout: str, by: str, tmp_path: Path) -> None:
    datasets.disable_progress_bars()
    LAYOUTS[layout](tmp_path / "m/a/b")
    mirrors = {"a/b": str(tmp_path / "m/a/b")} if by == "id" else {"*": str(tmp_path / "m")}
    for config in ("c", None):
        origin = locate(Source(dataset="a/b", config=config, split="test"), mirrors)
        assert list(origin.rows()) == ROWS
        assert [row["text"] for row in origin.rows(["text"])] == [row["text"] for row in ROWS]


def test_a_folder_called_default_comes_first(tmp_path: Path) -> None:
    for folder, count in (("only", 5), (".", 1), ("default", 2)):
        parquet(tmp_path / folder / "test.parquet", ROWS[:count])
        assert mirrored(tmp_path) == ROWS[:count]


def test_files_that_name_no_split_are_training_data(tmp_path: Path) -> None:
    jsonl(tmp_path / "file-000000000001.json.gz")
    assert mirrored(tmp_path, split="train") == ROWS
    with pytest.raises(SourceError, match=r"no split 'test'; there is file-000000000001\.json\.gz"):
        mirrored(tmp_path)


def test_data_files_are_found_where_the_hub_has_them(tmp_path: Path) -> None:
    jsonl(tmp_path / "right/validation.jsonl")
    jsonl(tmp_path / "wrong/validation.jsonl", ROWS[:1])
    assert mirrored(tmp_path, split="validation", data_files=("right/*.jsonl",)) == ROWS


@pytest.mark.parametrize(("keys", "message"), cases("prefill/odd", "sources"))
def test_what_cannot_be_located_is_named(
    keys: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "m/c/test.parquet")
    parquet(tmp_path / "m/c/two.parquet")
    jsonl(tmp_path / "m/c/two.jsonl.gz")
    for file in ("a.txt", "x.csv"):
        (tmp_path / file).write_text("a,b")
    (tmp_path / "b.txt").symlink_to("a.txt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=message):
        locate(Source(**keys), {"a/b": "m", "g/h": str(tmp_path / "gone")})


@pytest.mark.parametrize("ending", [".jsonl.zst", ".json.zstd", ".txt.zst", ".jsonl.gz"])
def test_packed_files_are_read(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"test{ending}"
    rows = [{"text": f"é {number}"} for number in range(3000)]
    texts = [row["text"] for row in rows] if "txt" in ending else list(map(json.dumps, rows))
    with pa.output_stream(str(path), compression="gzip" if "gz" in ending else "zstd") as file:
        file.write("\n".join(texts).encode())
    expected = [{"text": "\n".join(texts)}] if "txt" in ending else rows
    assert mirrored(tmp_path) == mirrored(path) == expected
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SourceError, match=r"cannot be unpacked: .*copy it again"):
        mirrored(path)


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.jsonl", "a.json", "a.txt", "a.jsonl.gz", "a.txt.zst"]
)
def test_a_pointer_of_git_lfs_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(
        "version https://git-lfs.github.com/spec/v1\noid "
        "sha256:4cac19622fc3ada9c0fdeadb33f88f367b541f38\nsize 9\n"
    )
    with pytest.raises(SourceError, match=rf"{name}: a pointer of Git LFS.*run `git lfs pull`"):
        mirrored(tmp_path / name)


def test_files_are_looked_for_beside_the_configuration_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, here = tmp_path / "config", tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    content = {
        "results": "r",
        "cache": "c",
        "stages": {"s": {"checkpoints": "n", "steps": [1], "suites": ["x"]}},
    }
    beside.mkdir()
    config = validate_config(content, "test", [beside / "config.yaml"])
    source = Slice(files=("data/*.jsonl",))
    with pytest.raises(SourceError) as caught:
        locate_item(source, config)
    for folder in (beside, here):
        assert f"{folder}/data/*.jsonl" in str(caught.value)
    jsonl(here / "data/a.jsonl", ROWS[:1])
    assert list(locate_item(source, config)[0][0].rows()) == ROWS[:1]
    jsonl(beside / "data/b.jsonl", ROWS[1:])
    assert list(locate_item(source, config)[0][0].rows()) == ROWS[1:]


def test_another_commit_than_before_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(dataset="a/b")
    for commit in ("a" * 40, "a" * 40, "b" * 40, "b" * 40):
        note_commit(tmp_path / "commits", source, commit)
    (warning,) = caplog.messages
    assert f"a/b: main is commit {'b' * 40} now, and was {'a' * 40}" in warning
    note_commit(tmp_path / "commits", Source(dataset="a/b", revision="other"), "c" * 40)
    assert len(caplog.messages) == 1


def test_a_dataset_without_a_mirror_is_on_the_hub(tmp_path: Path) -> None:
    assert locate(Source(dataset="a/b"), {"*": str(tmp_path)}).files is None


def test_text_files_are_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one é\ntwo\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"three"))
    source = Source(files=(str(tmp_path / "*.txt*"),))
    assert [row["text"] for row in locate(source, {}).rows()] == ["one é\ntwo\n", "three"]
    monkeypatch.setattr(files, "_LONGEST_DOCUMENT", 5)
    assert "".join(row["text"] for row in locate(source, {}).rows()) == "one é\ntwo\nthree"


def test_parts_that_are_not_there_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first ones of a large mirror may be all that is wanted."""
    parquet(tmp_path / "test-00000-of-00003.parquet", ROWS[:2])
    parquet(tmp_path / "test-00002-of-00003.parquet", ROWS[2:])
    assert mirrored(tmp_path) == ROWS
    assert f"{tmp_path}/test: 2 of its 3 parts are there" in caplog.text
    parquet(tmp_path / "test-00001-of-00003.parquet", ROWS[:1])
    caplog.clear()
    assert len(mirrored(tmp_path)) == 6
    assert caplog.text == ""
    jsonl(tmp_path / "dotted/test.00000-of-00002.jsonl")
    assert mirrored(tmp_path / "dotted") == ROWS
    assert f"{tmp_path}/dotted/test: 1 of its 2 parts are there" in caplog.text


HUB_ROWS = [{"text": "a", "other": 1}, {"text": "b", "other": 2}]


def read(source: Source, fields: list[str] | None = None) -> list[dict[str, Any]]:
    return list(locate(source, {}).rows(fields))


def test_all_of_a_source_reaches_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def load(path: str, name: str | None, **options: Any) -> Any:
        calls.append({"path": path, "name": name, **options})
        return datasets.Dataset.from_list(HUB_ROWS).to_iterable_dataset()

    monkeypatch.setattr(datasets, "load_dataset", load)
    asked: dict[str, Any] = {"config": "c", "split": "s", "revision": "r", "streaming": True}
    source = Source(dataset="a/b", data_files=("x.jsonl",), **asked)
    assert read(source) == HUB_ROWS
    assert read(source, ["text"]) == [{"text": "a"}, {"text": "b"}]
    assert read(source, ["missing"]) == HUB_ROWS
    expected = {"path": "a/b", "name": "c", "split": "s", "revision": "r", "streaming": True}
    assert calls == [expected | {"data_files": {"s": ["x.jsonl"]}}] * 3


def test_a_stream_that_fails_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        raise NotImplementedError("no streaming of zip in zip")
        yield {}

    def load(path: str, name: str | None, **options: Any) -> Any:
        if options["streaming"]:
            return datasets.IterableDataset.from_generator(broken)
        return datasets.Dataset.from_list(HUB_ROWS)

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert read(Source(dataset="a/b", streaming=True)) == HUB_ROWS
    assert "a/b: streaming failed" in caplog.text
    assert "no streaming of zip in zip" in caplog.text


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DatasetNotFoundError("Dataset 'a/b' is a gated dataset on the Hub."), "it is gated"),
        (DatasetNotFoundError("Dataset 'a/b' doesn't exist"), "it is not on the hub"),
        (ConnectionError("Couldn't reach 'a/b' on the Hub"), r"mirrors: \{a/b: …\}"),
        (RuntimeError("Dataset scripts are no longer supported, but found b.py"), "refs/convert"),
        (ValueError("BuilderConfig 'c' not found. Available: ['d']"), r"Available: \['d'\]"),
        (ValueError("Unknown split \"x\". Should be one of ['train']."), "Should be one of"),
    ],
)
def test_one_sentence_for_each_refusal(
    error: Exception, message: str, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(SourceError, match=message) as caught:
        read(Source(dataset="a/b", streaming=streaming))
    assert "\n" not in str(caught.value)

"""Every layout of a mirror gives the same rows; the hub gives them, or refuses in a sentence."""

import gzip
import json
import os
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
from evaluation.prefill.sources import locate
from evaluation.settings.sources import Source

ROWS = [{"text": f"text {number} é\n", "label": number} for number in range(5)]


def parquet(path: Path, rows: list[dict[str, object]] = ROWS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def jsonl(path: Path, rows: list[dict[str, object]] = ROWS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def saved_dict(folder: Path) -> None:
    parts = {
        "train": datasets.Dataset.from_list(ROWS[:1]),
        "test": datasets.Dataset.from_list(ROWS),
    }
    datasets.DatasetDict(parts).save_to_disk(folder)


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
    source = Source(dataset="a/b", config="c", split="test")
    origin = locate(source, mirrors)
    assert list(origin.rows()) == ROWS
    assert [row["text"] for row in origin.rows(["text"])] == [row["text"] for row in ROWS]
    without_config = locate(Source(dataset="a/b", split="test"), mirrors)
    assert list(without_config.rows()) == ROWS


def test_without_a_configuration(tmp_path: Path) -> None:
    parquet(tmp_path / "only/test.parquet")
    source = Source(dataset="a/b", split="test")
    mirrors = {"a/b": str(tmp_path)}
    assert list(locate(source, mirrors).rows()) == ROWS
    parquet(tmp_path / "test.parquet", ROWS[:1])
    assert len(list(locate(source, mirrors).rows())) == 1
    parquet(tmp_path / "default/test.parquet", ROWS[:2])
    assert len(list(locate(source, mirrors).rows())) == 2


def test_files_that_name_no_split_are_training_data(tmp_path: Path) -> None:
    jsonl(tmp_path / "file-000000000001.json.gz")
    mirrors = {"a/b": str(tmp_path)}
    assert list(locate(Source(dataset="a/b"), mirrors).rows()) == ROWS
    with pytest.raises(SourceError, match=r"no split 'test'; there is file-000000000001\.json\.gz"):
        locate(Source(dataset="a/b", split="test"), mirrors)


def test_data_files_are_found_where_the_hub_has_them(tmp_path: Path) -> None:
    jsonl(tmp_path / "right/validation.jsonl")
    jsonl(tmp_path / "wrong/validation.jsonl", ROWS[:1])
    source = Source(dataset="a/b", split="validation", data_files=("right/*.jsonl",))
    assert list(locate(source, {"a/b": str(tmp_path)}).rows()) == ROWS
    parquet(tmp_path / "other/default/validation.parquet")
    with pytest.raises(
        SourceError, match=r"matches data_files 'right/\*\.jsonl'; there is default;"
    ):
        locate(source, {"a/b": str(tmp_path / "other")})


def test_one_file_for_all(tmp_path: Path) -> None:
    parquet(tmp_path / "x.parquet")
    for config in (None, "c"):
        source = Source(dataset="a/b", config=config, split="whatever")
        assert list(locate(source, {"a/b": str(tmp_path / "x.parquet")}).rows()) == ROWS


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    parquet(tmp_path / "c/test.parquet")
    mirrors = {"a/b": str(tmp_path)}
    with pytest.raises(
        SourceError, match=r"dataset a/b: its mirror \S+/c has no split 'train' of .*test\.parquet"
    ):
        locate(Source(dataset="a/b", config="c"), mirrors)
    with pytest.raises(
        SourceError, match=r"of configuration 'd'; there is c; put it at .*/d/train"
    ):
        locate(Source(dataset="a/b", config="d"), mirrors)
    with pytest.raises(SourceError, match=r"mirrors\.a/b: \S+/gone does not exist"):
        locate(Source(dataset="a/b"), {"a/b": str(tmp_path / "gone")})
    with pytest.raises(SourceError, match="files: nothing is at"):
        locate(Source(files=(str(tmp_path / "*.csv"),)), {})
    (tmp_path / "x.csv").write_text("a,b")
    with pytest.raises(SourceError, match=r"x\.csv is not Parquet, JSON\(L\) or text"):
        locate(Source(files=(str(tmp_path / "*.csv"),)), {})


def test_a_dataset_without_a_mirror_is_on_the_hub(tmp_path: Path) -> None:
    assert locate(Source(dataset="a/b"), {"*": str(tmp_path)}).files is None


def test_a_file_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.txt").symlink_to("a.txt")
    a, b = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
    for named, message in (
        ((a, a), "a.txt is named twice; "),
        ((a, b), "b.txt is named twice as "),
    ):
        with pytest.raises(SourceError, match=message):
            locate(Source(files=named), {})
    with pytest.raises(SourceError, match="is named twice"):
        locate(Source(files=(a, str(tmp_path / "a*"))), {})


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "m" / "test.parquet").mkdir(parents=True)
    os.mkfifo(tmp_path / "m" / "test.jsonl")
    (tmp_path / "m" / "test.json").symlink_to("/nowhere")
    with pytest.raises(SourceError) as caught:
        locate(Source(dataset="a/b", split="test"), {"a/b": str(tmp_path / "m")})
    for message in (
        "json (a broken link)",
        "jsonl (a pipe, socket or device)",
        "parquet (a folder)",
    ):
        assert f"test.{message}" in str(caught.value)


def test_text_files_are_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one é\ntwo\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"three"))
    source = Source(files=(str(tmp_path / "*.txt*"),))
    assert [row["text"] for row in locate(source, {}).rows()] == ["one é\ntwo\n", "three"]
    monkeypatch.setattr(files, "_LONGEST_DOCUMENT", 5)
    assert "".join(row["text"] for row in locate(source, {}).rows()) == "one é\ntwo\nthree"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"ab\ncaf\xe9 x", r"a\.txt: the file is not UTF-8 text \(byte 6\)"),
        ("a.txt", b"x" * (1 << 20) + b"\xff", rf"not UTF-8 text \(byte {1 << 20}\)"),
        ("a.jsonl", b'{"text": "x"}\n{"text": "\xe9"}\n', r"line 2 is not UTF-8 text \(byte 10\)"),
    ],
)
def test_unreadable_files(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=message):
        list(locate(Source(files=(str(tmp_path / name),)), {}).rows())


def test_a_split_in_two_formats_is_refused(tmp_path: Path) -> None:
    parquet(tmp_path / "test.parquet")
    jsonl(tmp_path / "test.jsonl.gz")
    with pytest.raises(SourceError, match=r"as \.jsonl and as \.parquet; leave one of them"):
        locate(Source(dataset="a/b", split="test"), {"a/b": str(tmp_path)})


def test_parts_that_are_not_there_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first ones of a large mirror may be all that is wanted."""
    parquet(tmp_path / "test-00000-of-00003.parquet", ROWS[:2])
    parquet(tmp_path / "test-00002-of-00003.parquet", ROWS[2:])
    origin = locate(Source(dataset="a/b", split="test"), {"a/b": str(tmp_path)})
    assert list(origin.rows()) == ROWS
    assert f"{tmp_path}/test: 2 of its 3 parts are there" in caplog.text
    parquet(tmp_path / "test-00001-of-00003.parquet", ROWS[:1])
    caplog.clear()
    origin = locate(Source(dataset="a/b", split="test"), {"a/b": str(tmp_path)})
    list(origin.rows())
    assert caplog.text == ""


HUB_ROWS = [{"text": "a", "other": 1}, {"text": "b", "other": 2}]

Load = Callable[..., Any]


def read(source: Source, fields: list[str] | None = None) -> list[dict[str, Any]]:
    return list(locate(source, {}).rows(fields))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Arguments that `load_dataset` was called with; it gives HUB_ROWS."""
    seen: list[dict[str, Any]] = []

    def load(path: str, name: str | None, **options: Any) -> Any:
        seen.append({"path": path, "name": name, **options})
        dataset = datasets.Dataset.from_list(HUB_ROWS)
        return dataset.to_iterable_dataset() if options["streaming"] else dataset

    monkeypatch.setattr(datasets, "load_dataset", load)
    return seen


def test_all_of_a_source_reaches_the_hub(calls: list[dict[str, Any]]) -> None:
    source = Source(
        dataset="a/b", config="c", split="s", revision="r", data_files=("x.jsonl",), streaming=True
    )
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

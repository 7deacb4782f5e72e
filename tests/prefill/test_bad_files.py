"""Data that are damaged, odd or far larger than they seem: one sentence that names file, row and field."""

import datetime
import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.errors import SourceError
from evaluation.prefill import files, sources
from evaluation.prefill.cloze import prefill_task
from evaluation.prefill.files import read_rows
from evaluation.prefill.slices import prefill_slice
from evaluation.prefill.sources import locate
from evaluation.settings.sources import Source
from tests.bad_input.mutations import damaged
from tests.prefill.plans import make_plan


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


MIB = 1 << 20
GOOD = {"text": "a fox", "question": "Who?", "choices": ["a fox", "a dog"], "label": 1}


def make_task(tmp_path: Path, tokenizer: Path, data: Path) -> None:
    task = {"choices": "choices", "gold": "label", "context": "{{ question }}"}
    tasks = {"t": task | {"files": (str(data),)}}
    prefill_task(make_plan(tmp_path / "c", tokenizer, tasks=tasks, sequence_length=64), "t")


COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "binary": (pa.array([b"one", b"two"]), "row 0: the field 'text' is binary"),
    "large binary": (pa.array([b"1", b"2"], pa.large_binary()), "row 0: the field 'text' is binary"),
    "numbers": (pa.array([1, 2]), "row 0: the text is a number, not text"),
    "dates": (pa.array([datetime.date(2024, 1, 2)] * 2), "row 0: the text is a date, not text"),
    "lists": (pa.array([["a"], ["b"]]), "row 0: the text is a list, not text"),
    "binary in lists": (pa.array([[b"a"], [b"b"]]), "row 0: the field 'text' is binary"),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_that_are_no_text(name: str, tmp_path: Path, fast_folder: Path) -> None:
    column, expected = COLUMNS[name]
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    slices = {"s": {"files": (str(tmp_path / "a.parquet"),), "tokens": 32}}
    plan = make_plan(tmp_path / "c", fast_folder, slices=slices)
    with pytest.raises(SourceError, match=rf"a\.parquet, {expected}"):
        prefill_slice(plan, "s")


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet: has 2 columns named 'text'; rename"):
        list(read_rows(tmp_path / "a.parquet", None))


def test_binary_columns_of_a_task(tmp_path: Path, fast_folder: Path) -> None:
    row = GOOD | {"question": b"Who?", "unused": b"\xff"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"t/0: the field 'question' is binary"):
        make_task(tmp_path, fast_folder, tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pylist([row | {"question": "Who?"}]), tmp_path / "a.parquet")
    make_task(tmp_path, fast_folder, tmp_path / "a.parquet")


def parquet_bytes(tmp_path: Path) -> bytes:
    pq.write_table(pa.Table.from_pylist([GOOD] * 100), tmp_path / "x.parquet", compression="zstd")
    return (tmp_path / "x.parquet").read_bytes()


PACKED = gzip.compress(lines(*[GOOD | {"n": n} for n in range(300)]))


@settings(max_examples=80)
@given(data=st.data())
def test_any_damage_is_named(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """In one line with the path, or rows are read."""
    folder = tmp_path_factory.mktemp("data")
    whole = {
        "a.jsonl": lines(GOOD, GOOD),
        "a.jsonl.gz": PACKED,
        "a.json": json.dumps([GOOD]).encode(),
        "a.txt": b"a text\n\nmore",
        "a.parquet": parquet_bytes(folder),
    }
    path = folder / data.draw(st.sampled_from(sorted(whole)))
    path.write_bytes(data.draw(damaged(whole[path.name])))
    said = str(path)
    try:
        list(read_rows(path, None))
    except SourceError as error:
        said = str(error)
    assert str(path) in said
    assert said.isprintable()
    assert len(said) < 800


FILES: dict[str, tuple[str, Callable[[Path], bytes], str]] = {
    "plain text called gzip": ("a.txt.gz", lambda _: b"text", "cannot be unpacked"),
    "a raw deflate stream": ("a.jsonl.gz", lambda _: PACKED[:10] + zlib.compress(b"x"), "a.jsonl.gz: "),
    "not UTF-8 lines": (
        "a.jsonl",
        lambda _: lines(GOOD) + b'{"a": "\xe9"}\n',
        r"line 2 is not UTF-8 text \(byte 7\)"),
    "not UTF-8 text": ("a.txt", lambda _: b"ab\ncaf\xe9 x", r"a\.txt: the file is not UTF-8 text \(byte 6\)"),
    "later not UTF-8": ("a.txt", lambda _: b"x" * MIB + b"\xff", rf"not UTF-8 text \(byte {MIB}\)"),
    "a key twice": ("a.jsonl", lambda _: lines(GOOD) + b'{"a": 1, "a": 2}',
        r"line 2 is not valid JSON \(the key 'a' appears twice"),
    "numbers for rows": ("a.jsonl", lambda _: b"5\n", "row 1 is not an object"),
    "nothing": ("a.jsonl", lambda _: b"", "has no rows"),
    "empty lines": ("a.jsonl", lambda _: b"\n\n", "has no rows"),
    "an empty array": ("a.json", lambda _: b"[]", "has no rows"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(name: str, tmp_path: Path, fast_folder: Path) -> None:
    file, content, expected = FILES[name]
    (tmp_path / file).write_bytes(content(tmp_path))
    with pytest.raises(SourceError, match=expected) as raised:
        make_task(tmp_path, fast_folder, tmp_path / file)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.rglob("cf_tasks/*/meta.json"))  # without it, it is no cache entry


PLACES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a folder called like a file": (lambda f: (f / "a.jsonl").mkdir(), "a.jsonl", "has no split"),
    "a folder called like Parquet": (lambda f: (f / "a.parquet").mkdir(), "*.parquet", "has no split"),
    "links in circles": (lambda f: [(f / name).symlink_to(f) for name in "xyz"], "**/*.jsonl",
        "leads to .* again; remove"),
    "a link to nowhere": (lambda f: (f / "a.jsonl").symlink_to("gone"), "a.jsonl", "files: "),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_odd_places(name: str, tmp_path: Path) -> None:
    make, pattern, expected = PLACES[name]
    make(tmp_path)
    with pytest.raises(SourceError, match=expected):
        list(locate(Source(files=(str(tmp_path / pattern),)), {}).rows())


@pytest.mark.parametrize("file", ["a.jsonl", "a.parquet"])
def test_unreadable_is_not_damaged(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_bytes(lines(GOOD))

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("evaluation.prefill.files._check_fetched", refuse)
    with pytest.raises(SourceError, match=rf"{file}: cannot be read .Permission denied"):
        list(locate(Source(files=(str(tmp_path / file),)), {}).rows())


def long_line(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        file.write(b'{"text": "' + b"a" * 4 * MIB + b'"}\n')


def no_line_break(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        for _ in range(8):
            file.write(b"\0" * MIB)


def long_array(path: Path) -> None:
    path.write_bytes(gzip.compress(b"[" + b'"a",' * MIB + b"1]"))


def repeated_text(path: Path) -> None:
    """64 rows, and one text of 8 MiB that the file has once."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 64, pa.int32()), ["a" * 8 * MIB])
    pq.write_table(pa.table({"text": text}), path, compression="zstd")
    assert path.stat().st_size < 8192


def one_page(path: Path) -> None:
    table = pa.table({"text": ["a" * 256 * MIB]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    assert path.stat().st_size < 64 << 10


BOMBS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a long line": ("a.jsonl.gz", long_line, "line 1 has more than 1 MiB"),
    "no line break": ("a.jsonl.gz", no_line_break, "line 1 has more than 1 MiB"),
    "a long array": ("a.json.gz", long_array, r"an array of more than 1 MiB; write JSON lines"),
    "a text in all rows": ("a.parquet", repeated_text, "rows take more than 128 MiB of memory"),
    "one page": ("a.parquet", one_page, "rows take more than 128 MiB of memory"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_too_much(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", MIB)
    monkeypatch.setattr(files, "LONGEST_ARRAY", MIB)
    monkeypatch.setattr(files, "MEMORY", 128 * MIB)
    file, write, words = BOMBS[name]
    write(tmp_path / file)
    with pytest.raises(SourceError, match=words) as caught:
        list(read_rows(tmp_path / file, None))
    assert str(tmp_path / file) in str(caught.value)


def test_large_files_are_read_little_by_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than the limit in all, but no few rows of it."""
    monkeypatch.setattr(files, "MEMORY", 128 * MIB)
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b'{"text": "' + b"a" * MIB + b'"}\n')
    assert sum(len(row["text"]) for row in read_rows(tmp_path / "a.jsonl.gz", None)) == 200 * MIB
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["a" * MIB] * 50})
    with pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(4):
            writer.write_table(table)
    assert sum(len(row["text"]) for row in read_rows(path, ["text"])) == 200 * MIB


def test_a_task_keeps_no_more_than_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*[{"q": ["a" * 99], "n": n} for n in range(10)]))
    origin = locate(Source(files=(str(path),)), {})
    rows, count = origin.first(3)
    assert ([row["n"] for row in rows], count) == ([0, 1, 2], 10)
    monkeypatch.setattr(sources, "MOST_LETTERS", 350)
    assert origin.first(3)[1] == 10
    said = r"a\.jsonl: its first 4 rows .* 350 characters.* `limit`"
    with pytest.raises(SourceError, match=said):
        origin.first(4)

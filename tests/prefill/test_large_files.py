"""Files that unpack to far more than they are: a sentence, and little memory."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.errors import SourceError
from evaluation.prefill import files, sources
from evaluation.prefill.files import read_rows
from evaluation.prefill.sources import locate
from evaluation.settings.sources import Source

MIB = 1 << 20


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
    path.write_text("".join(json.dumps({"q": ["a" * 99], "n": n}) + "\n" for n in range(10)))
    origin = locate(Source(files=(str(path),)), {})
    rows, count = origin.first(3)
    assert ([row["n"] for row in rows], count) == ([0, 1, 2], 10)
    monkeypatch.setattr(sources, "MOST_LETTERS", 350)
    assert origin.first(3)[1] == 10
    with pytest.raises(
        SourceError, match=r"a\.jsonl: its first 4 rows .* 350 characters.* `limit`"
    ):
        origin.first(4)


def test_a_key_that_a_row_gives_twice(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": "a", "text": "b"}\n')
    with pytest.raises(
        SourceError, match=r"line 2 is not valid JSON \(the key 'text' is there twice"
    ):
        list(read_rows(tmp_path / "a.jsonl", None))

"""Data that are damaged, odd or far larger than they seem: one sentence that names file, row and field."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.errors import SourceError
from evaluation.prefill.sources import read_rows
from tests.bad_input.mutations import damaged


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


GOOD = {"text": "a fox", "question": "Who?", "choices": ["a fox", "a dog"], "label": 1}


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
        list(read_rows(path))
    except SourceError as error:
        said = str(error)
    assert str(path) in said
    assert said.isprintable()
    assert len(said) < 800

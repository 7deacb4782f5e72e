"""Prompts for a trainer, from a file that may be damaged and ids that may be no lines."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.errors import ResultsError
from evaluation.files import write_parquet
from evaluation.grading.generated import FOLDER
from evaluation.reporting.curriculum import check_ids, curriculum, stored_rates
from evaluation.results.columns import COMPLETED, arrow_schema


def table(rates: Mapping[str, float | None]) -> pa.Table:
    """A row per prompt, by its id."""
    counts = {"n": 4, "correct": 2, "truncated": 0, "errors": 0, "weight": 1.0}
    common = {"verifier": "boxed", "strata": "{}", **counts}
    rows = [{"id": id, "pass_rate": rate, **common} for id, rate in rates.items()]
    return pa.Table.from_pylist(rows, schema=arrow_schema(COMPLETED[1:]))


def written(folder: Path, content: pa.Table) -> Path:
    path = folder / FOLDER / "sums" / "prompts.parquet"
    path.parent.mkdir(parents=True)
    write_parquet(path, content)
    return path


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(4, len(content) // 4):
        content[place] ^= 0xFF
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "flipped": flip,
    "deleted": lambda path: path.unlink(),
    "no rows": lambda path: write_parquet(path, table({})),
    "ids that are no UTF-8": lambda path: pq.write_table(
        table({"a": 0.5}).set_column(0, "id", pa.array([b"\xff"]).view(pa.string())), path
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, table({str(i): 0.5 for i in range(50)}))
    DAMAGES[name](path)
    with pytest.raises(ResultsError, match=r"prompts\.parquet: "):
        curriculum(
            tmp_path, "sums", list(stored_rates(tmp_path, "sums", None)), (0.01, 0.99), "easiest"
        )


def test_ids_and_rates(tmp_path: Path) -> None:
    """Of the prompts in the band, in the order that is asked for."""
    written(tmp_path, table({"all": 1.0, "few": 0.25, "half": 0.5, "none": 0.0, "unknown": None}))
    expected = [("half", 0.5), ("few", 0.25)]
    assert (
        curriculum(
            tmp_path, "sums", list(stored_rates(tmp_path, "sums", None)), (0.25, 0.99), "easiest"
        )
        == expected
    )
    assert (
        curriculum(
            tmp_path, "sums", list(stored_rates(tmp_path, "sums", None)), (0.25, 0.99), "hardest"
        )
        == expected[::-1]
    )


@pytest.mark.parametrize("id", ["a\nb", "a\r", "a\tb", "a\u2028b", "a\x85", ""])
def test_ids_that_are_no_lines(id: str) -> None:
    check_ids([("a b", 0.5)], None)
    with pytest.raises(ResultsError, match="give the task another `id`"):
        check_ids([("a", 0.5), (id, 0.5)], None)


def test_the_ids_of_a_trainer(tmp_path: Path) -> None:
    known = tmp_path / "ids.txt"
    known.write_bytes(b"a\r\nb")
    check_ids([("a", 0.5), ("b", 0.5)], known)
    with pytest.raises(ResultsError, match="1 of the 2 chosen ids are not in it, such as 'c'"):
        check_ids([("a", 0.5), ("c", 0.5)], known)
    known.write_bytes(b"\xff")
    with pytest.raises(ResultsError, match="not UTF-8 text"):
        check_ids([("a", 0.5)], known)


def test_a_folder_above_the_checkpoints_names_one_of_them(tmp_path: Path) -> None:
    for step in (10, 20):
        written(tmp_path / f"by_checkpoint/step_{step}", table({"a": 0.5}))
    with pytest.raises(ResultsError, match="no results of 'sums'") as caught:
        list(stored_rates(tmp_path, "sums", None))
    named = Path(str(caught.value).rpartition("such as ")[2])
    assert list(stored_rates(named, "sums", None)) == [("a", 0.5)]

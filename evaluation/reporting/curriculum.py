"""Prompts by how often they are solved, for a trainer that takes those worth learning from."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from evaluation.errors import ResultsError
from evaluation.grading.generation_files import FOLDER

Order = Literal["easiest", "hardest"]

FILE = "prompts.parquet"


def curriculum(
    results: Path, task: str, verifier: str | None, band: tuple[float, float], order: Order
) -> list[tuple[str, float]]:
    """Ids of prompts whose pass rate is in the band, with their rates.

    Raises:
        ResultsError: no such results, or no prompt in the band.
    """
    low, high = band
    rates = list(_rates(results, task, verifier))
    chosen = [(id, rate) for id, rate in rates if low <= rate <= high]
    if not chosen:
        raise ResultsError(
            f"{results}: none of the {len(rates)} prompts of {task} has a pass rate from {low:g} to "
            f"{high:g}; widen --band"
        )
    return sorted(chosen, key=lambda one: one[1], reverse=order == "easiest")


def _rates(results: Path, task: str, verifier: str | None) -> Iterator[tuple[str, float]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = results / FOLDER / task / FILE
    if not path.is_file():
        there = sorted(folder.name for folder in (results / FOLDER).glob("*") if folder.is_dir())
        known = f"there are {', '.join(there)}" if there else "it has no generated answers"
        raise ResultsError(f"{results}: no results of {task!r}; {known}")
    try:
        rows = pq.read_table(path, columns=["id", "verifier", "pass_rate"]).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ResultsError(f"{path}: damaged ({error}); score this checkpoint again") from None
    views = list(dict.fromkeys(row["verifier"] for row in rows))
    chosen = verifier or views[0]
    if chosen not in views:
        raise ResultsError(f"{path}: no verifier {chosen!r}; there are {', '.join(views)}")
    for row in rows:
        if row["verifier"] == chosen and row["pass_rate"] is not None:
            yield row["id"], row["pass_rate"]


def check_known(chosen: Sequence[tuple[str, float]], known: Path) -> None:
    """Raises ResultsError for ids that the trainer's list, one a line, does not have."""
    try:
        ids = set(known.read_text(encoding="utf-8").split("\n"))
    except UnicodeDecodeError:
        raise ResultsError(f"{known}: not UTF-8 text; give a list of ids, one a line") from None
    lacking = [id for id, _ in chosen if id not in ids]
    if lacking:
        raise ResultsError(
            f"{known}: {len(lacking)} of the {len(chosen)} chosen ids are not in it, such as "
            f"{lacking[0]!r}; give the ids of the same data"
        )

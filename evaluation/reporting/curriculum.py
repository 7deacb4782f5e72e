"""Select prompts by their pass rate, for a trainer that takes those worth learning from."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from evaluation.errors import ResultsError
from evaluation.input_files import read_lines
from evaluation.results.columns import COMPLETED, read_table
from evaluation.results.files import COLLECT_AGAIN
from evaluation.results.verified_files import FOLDER
from evaluation.wording import no_such

Order = Literal["easiest", "hardest"]

FILE = "prompts.parquet"


def curriculum(
    origin: Path,
    task: str,
    rates: Sequence[tuple[str, float]],
    band: tuple[float, float],
    order: Order,
) -> list[tuple[str, float]]:
    """Return ids of prompts whose pass rate is in a band (both ends included), with their rates.

    Args:
        origin: Where the rates come from, for messages.

    Raises:
        ResultsError: No prompt is in the band, or it is reversed.
    """
    low, high = band
    if low > high:
        raise ResultsError(f"--band {low:g} {high:g}: write the lower rate first: {high:g} {low:g}")
    chosen = [(id, rate) for id, rate in rates if low <= rate <= high]
    if not chosen:
        raise ResultsError(
            f"{origin}: none of the {len(rates)} prompts of {task} has a pass rate from {low:g} to "
            f"{high:g}; widen --band"
        )
    return sorted(chosen, key=lambda one: one[1], reverse=order == "easiest")


def stored_rates(results: Path, task: str, verifier: str | None) -> Iterator[tuple[str, float]]:
    """Yield id and pass rate of each prompt with verdicts, by default of the primary verifier.

    Raises:
        ResultsError: There are no such results.
    """
    path = results / FOLDER / task / FILE
    if not path.is_file():
        there = sorted(folder.name for folder in (results / FOLDER).glob("*") if folder.is_dir())
        if task in there:
            raise ResultsError(
                f"{path}: is not a file, though {task} has results; `collect` this checkpoint again"
            )
        inside = sorted(path.parents[2] for path in results.glob(f"*/*/{FOLDER}/{task}/{FILE}"))
        hint = f"; give a checkpoint's folder, such as {inside[-1]}" if inside else ""
        raise ResultsError(f"{results}: {no_such('results of', task, there)}{hint}")
    rows = read_table(path, COMPLETED[1:], COLLECT_AGAIN).to_pylist()
    views = list(dict.fromkeys(row["verifier"] for row in rows))
    if not views:
        raise ResultsError(f"{path}: it has no rows; {COLLECT_AGAIN}")
    chosen = verifier or views[0]
    if chosen not in views:
        raise ResultsError(f"{path}: {no_such('verifier', chosen, views)}")
    for row in rows:
        if row["verifier"] == chosen and row["pass_rate"] is not None:
            yield row["id"], row["pass_rate"]


def check_ids(chosen: Sequence[tuple[str, float]], path: Path | None) -> None:
    """Check that each id can be written as a cell of one line, and that the trainer's list has it.

    Args:
        path: The trainer's list of ids, one a line, in UTF-8; None where there is none.

    Raises:
        ResultsError: An id is empty, has a break or tab, or is not in a list that can be read.
    """
    for id, _ in chosen:
        if "\t" in id or id.splitlines() != [id]:
            raise ResultsError(
                f"the id {id!r} is empty, or has a line break or tab, and ids are written one a line; "
                "give the task another `id`"
            )
    if path is None:
        return
    expected = "a list of ids in UTF-8, one a line"
    try:
        lines = read_lines(path, ResultsError, expected)
        ids = {line.decode().rstrip("\r\n") for _, line in lines}
    except UnicodeDecodeError:
        raise ResultsError(f"{path}: not UTF-8 text; give {expected}") from None
    lacking = [id for id, _ in chosen if id not in ids]
    if lacking:
        raise ResultsError(
            f"{path}: {len(lacking)} of the {len(chosen)} chosen ids are not in it, such as "
            f"{lacking[0]!r}; give the ids of the same data"
        )

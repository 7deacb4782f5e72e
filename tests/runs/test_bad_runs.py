"""What forbids that two runs are compared: one sentence each, and nothing is written."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bridge.folders import edit_json, edited
from tests.bridge.units import write_all_units
from tests.runs.folders import folder_of, write_run
from tests.tools.conftest import Command, command

__all__ = ["command"]
TIER2, TIER3 = "tier2_ppl.json", "tier3_cf.json"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bad_runs")
    for number, name in enumerate("AB"):
        write_run(root / name, number=number, steps=(10, 20), items=20, blocks=9, prompts=8)
    return root


def both(root: Path, file: str) -> list[Path]:
    """A file of both steps of B."""
    return [folder_of(root, "B", step) / file for step in (10, 20)]


def every(root: Path, file: str, **keys: object) -> None:
    for path in both(root, file):
        edit_json(path, **keys)


def renamed(root: Path, **names: str) -> None:
    """Tasks of B under other names."""
    for path in both(root, TIER3):
        with edited(path) as content:
            content["tasks"] = {names.get(k, k): v for k, v in content["tasks"].items()}
        table = path.with_name("tier3_cf_candidates.parquet")
        rows = pq.read_table(table)
        tasks = [names.get(name, name) for name in rows["task"].to_pylist()]
        pq.write_table(rows.set_column(0, "task", pa.array(tasks)), table)
        write_all_units(path.parent)


def other_steps(root: Path) -> None:
    for step in (10, 20):
        folder_of(root, "B", step).rename(folder_of(root, "B", step + 5))


def damaged(root: Path) -> None:
    (folder_of(root, "B", 20) / TIER2).write_bytes(b"{")


def other_tokenizer(root: Path) -> None:
    every(root, TIER2, tokenizer={"name": "other", "fingerprint": "other"})


CASES: list[tuple[Callable[[Path], object], tuple[str, ...], list[str]]] = [
    (
        lambda root: renamed(root, exam="riddles"),
        (),
        ["the suites differ", "step_10 has exam alone", "step_10 has riddles alone"],
    ),
    (
        lambda root: every(root, TIER2, protocol="test-2"),
        (),
        ["protocol: 'test-1' in", "'test-2' in"],
    ),
    (other_steps, (), ["no checkpoints match by steps: A has 10 to 20 and B has 15 to 25"]),
    (other_steps, ("--by", "tokens"), []),
    (damaged, (), [f"step_20/{TIER2}: not JSON"]),
    (other_tokenizer, (), ["tokenizer: ", "compare the bits per byte of both summary.csv"]),
]


@pytest.mark.parametrize(("breakage", "flags", "words"), CASES)
def test_one_sentence(
    command: Command,
    pristine: Path,
    tmp_path: Path,
    breakage: Callable[[Path], object],
    flags: tuple[str, ...],
    words: list[str],
) -> None:
    root = Path(shutil.copytree(pristine, tmp_path / "runs"))
    breakage(root)
    output = ("--output", tmp_path / "out")
    ended = command("compare", root / "A/results", root / "B/results", *flags, *output)
    ended.check(1 if words else 0, *words)
    assert (tmp_path / "out").exists() == (not words)
    if words:
        assert ended.out == ""
        assert ended.err.count("\n") == 1, ended.err

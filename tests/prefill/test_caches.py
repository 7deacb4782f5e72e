"""Readers refuse whatever is not exactly what prefill wrote, and say how to mend it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.errors import CacheError
from evaluation.prefill.caches import read_slice, read_task
from evaluation.prefill.cloze import prefill_task
from evaluation.prefill.slices import prefill_slice
from tests.prefill.plans import make_plan

REMEDY = "snakemake --profile slurm_profile prefill"

Read = Callable[[Path], object]


@pytest.fixture(params=["slice", "task"])
def entry(request: pytest.FixtureRequest, tmp_path: Path, fast_folder: Path) -> tuple[Path, Read]:
    rows = tmp_path / "rows.jsonl"
    row = {"text": "The quick brown fox " * 9, "choices": ["a fox", "a dog"], "label": 1}
    rows.write_text((json.dumps(row) + "\n") * 3)
    files = {"files": (str(rows),)}
    plan = make_plan(
        tmp_path / "cache",
        fast_folder,
        slices={"s": files | {"tokens": 64}},
        tasks={"t": files | {"choices": "choices", "gold": "label", "context": "Who?"}},
    )
    if request.param == "slice":
        prefill_slice(plan, "s")
        return plan.slice_folder("s"), read_slice
    prefill_task(plan, "t")
    return plan.task_folder("t"), read_task


def test_a_whole_entry_is_read(entry: tuple[Path, Read]) -> None:
    folder, read = entry
    assert read(folder) is not None


def test_nothing_prefilled(entry: tuple[Path, Read], tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=f"none is not prefilled.*{REMEDY}"):
        entry[1](tmp_path / "none")


def test_a_flipped_bit_is_noticed_in_every_file(entry: tuple[Path, Read]) -> None:
    folder, read = entry
    for path in folder.iterdir():
        whole = path.read_bytes()
        for at in (0, len(whole) // 2, len(whole) - 2):
            flipped = bytearray(whole)
            flipped[at] ^= 1
            path.write_bytes(flipped)
            if path.name != "meta.json":
                with pytest.raises(CacheError, match=f"{path.name} is damaged.*delete.*{REMEDY}"):
                    read(folder)
            elif at == 0:
                with pytest.raises(CacheError, match="damaged"):
                    read(folder)
        path.write_bytes(whole)
    assert read(folder) is not None


def test_truncated_and_missing_files(entry: tuple[Path, Read]) -> None:
    folder, read = entry
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for size in (0, len(whole) // 2):
            path.write_bytes(whole[:size])
            with pytest.raises(CacheError, match=f"{path.name} is damaged"):
                read(folder)
        path.unlink()
        with pytest.raises(CacheError, match=REMEDY):
            read(folder)
        path.write_bytes(whole)


def test_a_foreign_meta(entry: tuple[Path, Read]) -> None:
    folder, read = entry
    meta = json.loads((folder / "meta.json").read_text())
    meta["blocks"] = meta["items"] = {"used": 7}
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(CacheError, match="damaged"):
        read(folder)
    (folder / "meta.json").write_text("[]")
    with pytest.raises(CacheError, match="holds no checksums"):
        read(folder)

"""Whether data is still what a cache was made of: asked of the file system, then of its checksum."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from evaluation.dependencies.caches import CacheEntry, CacheStates, tokenizer_entry
from evaluation.errors import SourceError
from evaluation.prefill import generation, packing, sources, states
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from tests.prefill.plans import make_plan
from tests.workflow.world import write_rows

FIRST, SECOND = "test-00000-of-00002.jsonl", "test-00001-of-00002.jsonl"
TASK = {"choices": "choices", "gold": "label", "context": "Who?"}
ASKED = {
    "prompt": "{{ choices[0] }}?",
    "chat": False,
    "stop": ["."],
    "max_new_tokens": 1,
    "document": {"gold": "choices[0]"},
    "verifiers": {"exact": {"kind": "pattern", "pattern": "(.+)", "form": "{gold}"}},
}


def write(path: Path, *names: str) -> None:
    write_rows(path, [{"text": f"{n} " * 9, "choices": [n, "dog"], "label": 0} for n in names])


def corrected(path: Path, old: bytes = b"ox", new: bytes = b"ux") -> None:
    """Other bytes of the same number, under the time that the file had."""
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are read as they are needed, however short they are, and no golds are verified."""
    monkeypatch.setattr(packing, "_BATCH_DOCUMENTS", 1)
    monkeypatch.setattr(generation, "check_golds", lambda *_, **__: None)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    write(folder / FIRST, "fox", "box")
    write(folder / SECOND, "ox", "pox")
    return folder


@pytest.fixture
def plan(tmp_path: Path, mirror: Path, fast_folder: Path) -> StagePlan:
    return planned(tmp_path, mirror, shutil.copytree(fast_folder, tmp_path / "tokenizer"))


def planned(tmp_path: Path, mirror: Path, tokenizer: Path) -> StagePlan:
    source = {"dataset": "a/b", "split": "test"}
    return make_plan(
        tmp_path / "cache",
        tokenizer,
        slices={"all": {**source, "tokens": 320}, "first": {**source, "tokens": 16}},
        tasks={"t": source | TASK},
        generation_tasks={"g": source | ASKED},
        mirrors={"a/b": str(mirror)},
    )


TIERS = {"all": "tier2", "first": "tier2", "t": "tier3", "g": "tier5"}


def entries(plan: StagePlan) -> dict[str, CacheEntry]:
    found = {
        name: CacheEntry(plan, tier, name, plan.cache_folder(tier, name))
        for name, tier in TIERS.items()
    }
    return found | {"tokenizer": tokenizer_entry(plan)}


def prefill(plan: StagePlan, *names: str) -> None:
    for name in names or TIERS:
        PREFILLS[TIERS[name]].make(plan, name)


def stale(plan: StagePlan) -> set[str]:
    """As a run that begins now would find them."""
    known = CacheStates()
    return {name for name, entry in entries(plan).items() if known.state(entry) != "current"}


@pytest.fixture
def summed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose checksums were taken."""
    found: list[str] = []

    def checksum(path: Path) -> str:
        found.append(path.name)
        return real(path)

    real = states.file_checksum
    monkeypatch.setattr(states, "file_checksum", checksum)
    return found


def led_to_copy(mirror: Path) -> Path:
    return Path(shutil.copytree(mirror, mirror.parent / "copy"))


def led_to_other(mirror: Path) -> Path:
    other = led_to_copy(mirror)
    corrected(other / SECOND)
    return other


def touched(mirror: Path) -> None:
    for path in mirror.iterdir():
        path.touch()


def replaced(mirror: Path) -> None:
    copy = led_to_other(mirror)
    os.replace(copy / SECOND, mirror / SECOND)


ALL = {"all", "t", "g"}
EDITS: dict[str, tuple[Callable[[Path], Path | None], set[str], list[str]]] = {
    "nothing": (lambda mirror: None, set(), []),
    "touched": (touched, set(), [FIRST, SECOND]),
    "led to a copy": (led_to_copy, set(), [FIRST, SECOND]),
    "one of two corrected, size and time kept": (lambda mirror: corrected(mirror / SECOND), ALL, [SECOND]),
    "the one that all read corrected": (lambda mirror: corrected(mirror / FIRST), {*ALL, "first"}, [FIRST]),
    "one of two replaced": (replaced, ALL, [SECOND]),
    "led to a folder of equal names and sizes": (led_to_other, ALL, [FIRST, SECOND]),
    "another size": (lambda mirror: write(mirror / SECOND, "clock"), ALL, []),
    "one more file": (lambda mirror: write(mirror / "test-2.jsonl", "z"), ALL, []),
    "a file before": (lambda mirror: write(mirror / "a-test.jsonl", "z"), {*ALL, "first"}, []),
}  # fmt: skip
"""What befalls a mirror, what is to be made anew of it, and which checksums tell."""


@pytest.mark.parametrize("name", EDITS)
def test_what_an_edit_of_a_mirror_outdates(
    name: str, plan: StagePlan, mirror: Path, tmp_path: Path, summed: list[str]
) -> None:
    edit, outdated, looked_at = EDITS[name]
    prefill(plan)
    assert stale(plan) == set()
    summed.clear()
    plan = planned(tmp_path, edit(mirror) or mirror, tmp_path / "tokenizer")
    assert stale(plan) == outdated
    assert sorted(summed) == looked_at
    assert stale(plan) == outdated
    assert sorted(summed) == looked_at  # each was taken once
    made = {name: entry.folder.stat().st_ino for name, entry in entries(plan).items()}
    prefill(plan)
    again = {
        name for name, entry in entries(plan).items() if entry.folder.stat().st_ino != made[name]
    }
    assert again == outdated
    assert stale(plan) == set()


def test_a_tokenizers_folder(plan: StagePlan, tmp_path: Path) -> None:
    prefill(plan)
    for path in (tmp_path / "tokenizer").iterdir():
        path.touch()
    assert stale(plan) == set()
    corrected(tmp_path / "tokenizer" / "tokenizer_config.json", b"<s>", b"<S>")
    assert stale(plan) == {"tokenizer"}


def test_a_saved_dataset(tmp_path: Path, fast_folder: Path) -> None:
    datasets.disable_progress_bars()
    folder = tmp_path / "saved"
    datasets.Dataset.from_list([{"choices": ["fox", "dog"], "label": 0}]).save_to_disk(folder)
    tasks, mirrors = {"t": {"dataset": "a/b", **TASK}}, {"a/b": str(folder)}
    plan = make_plan(tmp_path / "cache", fast_folder, tasks=tasks, mirrors=mirrors)
    prefill(plan, "t")
    entry = entries(plan)["t"]
    (folder / "cache-0f.arrow").write_bytes(b"of a map that somebody ran")
    touched(folder)
    assert CacheStates().state(entry) == "current"
    corrected(next(folder.glob("data-*.arrow")))
    assert CacheStates().state(entry) == "stale"


@pytest.mark.parametrize("file", [FIRST, SECOND])
@pytest.mark.parametrize("name", ["all", "t"])
def test_data_replaced_while_it_is_read_is_not_kept(
    name: str, file: str, plan: StagePlan, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = led_to_copy(mirror) / file
    corrected(other)
    real = sources.read_rows

    def read(path: Path, *rest: Any) -> Iterator[Any]:
        rows = real(path, *rest)
        yield next(rows)
        if path.name == SECOND:
            os.replace(other, mirror / file)
        yield from rows

    monkeypatch.setattr(sources, "read_rows", read)
    with pytest.raises(SourceError, match=rf"{file} was changed while it was read; wait until"):
        prefill(plan, name)
    assert not entries(plan)[name].folder.exists()
    monkeypatch.undo()
    prefill(plan, name)
    assert CacheStates().state(entries(plan)[name]) == "current"


def test_files_that_are_not_there_are_told_before_a_job_is_submitted(
    tmp_path: Path, fast_folder: Path
) -> None:
    slices = {"web": {"files": ["nowhere/*.jsonl"], "tokens": 16}}
    plan = make_plan(tmp_path / "cache", fast_folder, slices=slices)
    entry = CacheEntry(plan, "tier2", "web", plan.cache_folder("tier2", "web"))
    with pytest.raises(SourceError, match=r"files: nothing is at nowhere/\*\.jsonl"):
        CacheStates().check_files(entry)

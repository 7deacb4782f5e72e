"""An entry is current as long as size and times of all the files that it was made from are the same."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import SourceError
from evaluation.flow.caches import CacheEntry, Caches, tokenizer_entry
from evaluation.prefill import generation, sources
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from tests.prefill.plans import make_plan
from tests.workflow.world import write_rows

FIRST, SECOND = "test-00000-of-00002.jsonl", "test-00001-of-00002.jsonl"
ASKED = {
    "prompt": "{{ choices[0] }}?",
    "chat": False,
    "stop": ["."],
    "max_new_tokens": 1,
    "document": {"gold": "choices[0]"},
    "verifiers": {"exact": {"kind": "pattern", "pattern": "(.+)"}},
}
ITEMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "all": ("tier2", "slices", {"tokens": 320}),
    "t": ("tier3", "tasks", {"choices": "choices", "gold": "label", "context": "Who?"}),
    "g": ("tier5", "generation_tasks", ASKED),
}


def write(path: Path, *names: str) -> None:
    write_rows(path, [{"text": f"{n} " * 9, "choices": [n, "dog"], "label": 0} for n in names])


@pytest.fixture(autouse=True)
def without_golds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "check_golds", lambda *_, **__: None)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    write(tmp_path / "mirror" / FIRST, "fox", "box")
    write(tmp_path / "mirror" / SECOND, "ox", "pox")
    return tmp_path / "mirror"


@pytest.fixture
def plan(tmp_path: Path, mirror: Path, fast_folder: Path) -> StagePlan:
    sections: dict[str, Any] = {
        section: {name: {"dataset": "a/b", "split": "test", **item}}
        for name, (_, section, item) in ITEMS.items()
    }
    tokenizer = shutil.copytree(fast_folder, tmp_path / "tokenizer")
    return make_plan(tmp_path / "cache", tokenizer, mirrors={"a/b": str(mirror)}, **sections)


def entries(plan: StagePlan) -> dict[str, CacheEntry]:
    found = {n: CacheEntry(plan, t, n, plan.cache_folder(t, n)) for n, (t, *_) in ITEMS.items()}
    return found | {"tokenizer": tokenizer_entry(plan)}


def prefill(plan: StagePlan, *names: str) -> None:
    for name in names or ITEMS:
        PREFILLS[ITEMS[name][0]].make(plan, name)


def stale(plan: StagePlan) -> set[str]:
    """As a run that begins now would find them."""
    known = Caches()
    return {name for name, entry in entries(plan).items() if known.entry_problem(entry)}


EDITS: dict[str, Callable[[Path], object]] = {
    "touched": lambda mirror: (mirror / FIRST).touch(),
    "another size": lambda mirror: write(mirror / SECOND, "clock"),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_an_edit_of_a_mirror_outdates(name: str, plan: StagePlan, mirror: Path) -> None:
    prefill(plan)
    made = {name: entry.folder.stat().st_ino for name, entry in entries(plan).items()}
    prefill(plan)
    assert {n: entry.folder.stat().st_ino for n, entry in entries(plan).items()} == made
    assert stale(plan) == set()
    EDITS[name](mirror)
    assert stale(plan) == ITEMS.keys()
    prefill(plan)
    assert stale(plan) == set()


def test_a_copy_and_what_is_beside_the_split_do_not_count(plan: StagePlan, mirror: Path) -> None:
    prefill(plan)
    write(mirror / "train-00000-of-00001.jsonl", "clock")
    shutil.copytree(mirror, mirror.parent / "copy")
    shutil.rmtree(mirror)
    (mirror.parent / "copy").rename(mirror)
    assert stale(plan) == set()


def test_a_tokenizers_folder(plan: StagePlan, tmp_path: Path) -> None:
    prefill(plan)
    (tmp_path / "tokenizer" / "tokenizer_config.json").touch()
    assert stale(plan) == {"tokenizer"}


@pytest.mark.parametrize("name", ["all", "t", "g"])
def test_what_is_replaced_while_it_is_read_is_outdated(
    name: str, plan: StagePlan, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sources.read_rows

    def read(path: Path) -> Iterator[Any]:
        yield from real(path)
        (mirror / FIRST).touch()

    monkeypatch.setattr(sources, "read_rows", read)
    prefill(plan, name)
    assert name in stale(plan)


@pytest.mark.parametrize("tests", [[], ["", " "], None])
def test_a_document_without_what_its_verifier_reads(
    tests: Any, tmp_path: Path, fast_folder: Path
) -> None:
    write_rows(tmp_path / "rows.jsonl", [{"choices": ["Who"], "tests": tests}])
    task = {"document": {"tests": "tests"}, "verifiers": {"runs": {"kind": "program"}}}
    asked = {"g": {"files": [str(tmp_path / "rows.jsonl")], **ASKED, **task}}
    plan = make_plan(tmp_path / "cache", fast_folder, generation_tasks=asked)
    with pytest.raises(SourceError, match=r"g/0: generation_tasks\.g\.document\.tests is empty"):
        PREFILLS["tier5"].make(plan, "g")

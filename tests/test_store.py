"""Atomic files and the score store."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from evaluation import store as store_module
from evaluation.files import atomic_path, fingerprint, write_json
from evaluation.store import ScoreStore, StoredScore


def write_half(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("half-way")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"a": 1})
    with pytest.raises(RuntimeError, match="half-way"):
        write_half(path)
    assert json.loads(path.read_text()) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_what_a_killed_writer_left_is_removed_and_a_living_ones_is_not(tmp_path: Path) -> None:
    path, host = tmp_path / "result.json", socket.gethostname()
    dead, alive = f".result.json.{host}+4194305+00.tmp", f".result.json.{host}+{os.getpid()}+00.tmp"
    fresh, far = f".result.json.{host}+4194305+01.tmp", ".result.json.far+1+00.tmp"
    for name in (dead, alive, fresh, far):
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (time.time() - 3600,) * 2)
    os.utime(tmp_path / fresh)
    write_json(path, {})
    assert {file.name for file in tmp_path.iterdir()} == {"result.json", alive, fresh, far}
    os.utime(tmp_path / far, (time.time() - 90_000,) * 2)
    write_json(path, {})
    assert not (tmp_path / far).exists()


def test_nan_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())


def test_fingerprint_ignores_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": "1"})


def test_a_score_is_found_under_its_key_alone(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path, "identity")
    score = StoredScore(pa.table({"nats": [1.5, 2.5]}), {"ppl": 3.0})
    store.put("web", {"protocol": "1"}, score)
    found = store.get("web", {"protocol": "1"})
    assert found is not None
    assert found.table.equals(score.table)
    assert found.summary == {"ppl": 3.0}
    assert store.get("web", {"protocol": "2"}) is None
    assert ScoreStore(tmp_path, "other").get("web", {"protocol": "1"}) is None


@pytest.mark.parametrize("keep", [0, 5, 100])
def test_a_damaged_score_is_set_aside_and_missing(tmp_path: Path, keep: int) -> None:
    store = ScoreStore(tmp_path, "identity")
    store.put("web", {}, StoredScore(pa.table({"nats": [1.5]}), {"ppl": 3.0}))
    path = store.path("web", {})
    path.write_bytes(path.read_bytes()[:keep])
    assert store.get("web", {}) is None
    assert not path.exists()
    assert path.with_suffix(".damaged").exists()


def score(number: float) -> StoredScore:
    return StoredScore(pa.table({"nats": [number]}), {"ppl": number})


def names(store: ScoreStore) -> list[str]:
    return sorted(path.suffix for path in store.folder.iterdir())


def test_packed_scores_are_one_file_and_are_found(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path, "identity")
    store.pack()
    for number in (1.0, 2.0):
        store.put(f"item{number}", {}, score(number))
    store.pack()
    store.pack()
    assert names(store) == [".zip"]
    store.put("later", {}, score(3.0))
    assert names(store) == [".parquet", ".zip"]
    store.pack()
    assert names(store) == [".zip", ".zip"]
    for item, number in (("item1.0", 1.0), ("item2.0", 2.0), ("later", 3.0)):
        found = store.get(item, {})
        assert found is not None
        assert found.summary == {"ppl": number}
    assert store.get("other", {}) is None


def test_nothing_is_lost_when_two_jobs_pack(tmp_path: Path) -> None:
    """The other packs what both have, and scores one more item, just before this one removes."""
    ours, theirs = (ScoreStore(tmp_path, "identity") for _ in range(2))
    ours.put("both", {}, score(1.0))
    atomic = store_module.atomic_path

    @contextlib.contextmanager
    def disturbed(path: Path) -> Iterator[Path]:
        with atomic(path) as temporary:
            yield temporary
        patch.undo()
        theirs.put("more", {}, score(2.0))
        theirs.pack()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "atomic_path", disturbed)
        ours.pack()
    assert set(names(ours)) == {".zip"}
    assert ours.get("both", {}) is not None
    assert ours.get("more", {}) is not None


def no_room(*_: Path) -> None:
    raise OSError(28, "No space left on device")


def test_a_failed_packing_keeps_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ScoreStore(tmp_path, "identity")
    store.put("web", {}, score(1.0))
    monkeypatch.setattr("os.replace", no_room)
    with pytest.raises(OSError, match="No space"):
        store.pack()
    assert names(store) == [".parquet"]
    assert store.get("web", {}) is not None


@pytest.mark.parametrize("keep", [0, 40, 200])
def test_a_damaged_archive_is_set_aside(tmp_path: Path, keep: int) -> None:
    store = ScoreStore(tmp_path, "identity")
    store.put("web", {}, score(1.0))
    store.pack()
    (archive,) = store.folder.glob("*.zip")
    archive.write_bytes(archive.read_bytes()[:keep])
    assert store.get("web", {}) is None
    assert names(store) == [".damaged"]


def test_a_score_damaged_within_an_archive_is_missing(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path, "identity")
    store.put("web", {}, score(1.0))
    store.pack()
    (archive,) = store.folder.glob("*.zip")
    content = bytearray(archive.read_bytes())
    content[100] ^= 1
    archive.write_bytes(content)
    assert store.get("web", {}) is None
    store.put("web", {}, score(1.0))
    assert store.get("web", {}) is not None

"""Atomic files and the score store."""

import json
import os
import socket
import time
from pathlib import Path

import pyarrow as pa
import pytest

from evaluation.store import ScoreStore, StoredScore, atomic_path, fingerprint, write_json


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

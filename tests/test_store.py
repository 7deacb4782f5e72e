"""The score store: packed, found again under any name, damaged."""

import contextlib
import errno
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation import store as store_module
from evaluation.errors import OutputError
from evaluation.files import fingerprint
from evaluation.store import ScoreStore, StoredScore


def score(number: float) -> StoredScore:
    return StoredScore(pa.table({"nats": [number]}), {"ppl": number})


def got(store: ScoreStore, item: str) -> StoredScore | None:
    return store.read(store.path(item, ()).name)


def summary(store: ScoreStore, item: str) -> dict[str, Any] | None:
    found = got(store, item)
    return None if found is None else found.summary


def names(store: ScoreStore) -> list[str]:
    return sorted(path.suffix for path in store.folder.iterdir())


@pytest.fixture
def store(tmp_path: Path) -> ScoreStore:
    return ScoreStore(tmp_path, "identity")


@pytest.fixture(params=[False, True], ids=["file", "archive"])
def held(request: pytest.FixtureRequest, store: ScoreStore) -> ScoreStore:
    """A store that holds one score, in a file or an archive."""
    store.put("web", (), score(1.0))
    if request.param:
        store.pack()
    return store


def test_packed_scores_are_one_file_and_are_found(store: ScoreStore) -> None:
    store.pack()
    for number in (1.0, 2.0):
        store.put(f"item{number}", (), score(number))
    store.pack()
    store.pack()
    assert names(store) == [".zip"]
    store.put("later", (), score(3.0))
    assert names(store) == [".parquet", ".zip"]
    store.pack()
    assert names(store) == [".zip", ".zip"]
    for item, number in (("item1.0", 1.0), ("item2.0", 2.0), ("later", 3.0)):
        assert summary(store, item) == {"ppl": number}
    assert summary(store, "other") is None


def test_parts_of_the_same_keys_are_all_read(store: ScoreStore) -> None:
    """Answers that another stop string ended are generated again, longer, under the same keys."""
    for text in ("short", "longer", "longest"):
        store.put_part("answers", (), StoredScore(pa.table({"key": ["a-0"], "text": [text]}), {}))
        store.pack()
    parts = [store.read(name) for name in store.names()]
    rows = [part.table.to_pylist()[0] for part in parts if part is not None]
    assert {row["text"] for row in rows} == {"short", "longer", "longest"}
    assert {row["key"] for row in rows} == {"a-0"}


def test_nothing_is_lost_when_two_jobs_pack(store: ScoreStore, tmp_path: Path) -> None:
    """The other packs what both have, and scores one more item, just before this one removes."""
    theirs = ScoreStore(tmp_path, "identity")
    store.put("both", (), score(1.0))
    atomic = store_module.atomic_path

    @contextlib.contextmanager
    def disturbed(path: Path) -> Iterator[Path]:
        with atomic(path) as temporary:
            yield temporary
        patch.undo()
        theirs.put("more", (), score(2.0))
        theirs.pack()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "atomic_path", disturbed)
        store.pack()
    assert set(names(store)) == {".zip"}
    assert summary(store, "both")
    assert summary(store, "more")


def test_holders_name_no_file_that_another_job_may_remove(store: ScoreStore) -> None:
    """The other has scored the same at once, and will pack it."""
    name = store.put_part("both", (), score(1.0))
    store.pack()
    (archive,) = store.folder.iterdir()
    store.put_part("both", (), score(1.0))
    alone = store.put_part("alone", (), score(2.0))
    assert store.holders([name]) == [archive]
    assert store.holders([name, alone]) == [archive, store.folder / alone]


def raising(error: OSError) -> Callable[..., None]:
    def raises(*_: Any) -> None:
        raise error

    return raises


def test_a_failed_packing_keeps_the_files(store: ScoreStore) -> None:
    store.put("web", (), score(1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.replace", raising(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            store.pack()
    assert names(store) == [".parquet"]
    assert summary(store, "web")


@pytest.mark.parametrize("keep", [0, 5, 100])
def test_a_damaged_file_is_set_aside_and_missing(held: ScoreStore, keep: int) -> None:
    (path,) = held.folder.iterdir()
    path.write_bytes(path.read_bytes()[:keep])
    assert summary(held, "web") is None
    assert names(held) == [".damaged"]


def test_a_score_damaged_within_an_archive_is_missing(store: ScoreStore) -> None:
    """The others of the archive are still read, and it is scored once more only."""
    for name in ("a", "web"):
        store.put(name, (), score(1.0))
    store.pack()
    (archive,) = store.folder.glob("*.zip")
    content = bytearray(archive.read_bytes())
    content[100] ^= 1  # in the first
    archive.write_bytes(content)
    assert summary(store, "a") is None
    assert summary(store, "web")
    assert names(store) == [".zip"]
    store.put("a", (), score(1.0))
    assert summary(store, "a")
    store.pack()
    for name in sorted(store.folder.glob("*.zip")):  # whichever of them is looked into first
        assert summary(store, "a")
        name.rename(name.with_name("0.zip"))
        assert summary(store, "a")
        (name.parent / "0.zip").rename(name)


def parquet(summary: bytes | None, **more: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    text = (summary or b"").decode("utf-8", "replace")
    metadata = {
        b"summary": summary,
        b"checkpoint": b"identity",
        b"digest": fingerprint([text, ["nats"]]).encode(),
        **{key.encode(): value for key, value in more.items()},
    }
    table = pa.table({"nats": [1.5]}).replace_schema_metadata(summary and metadata)
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


SUMMARIES = (None, b"{", b"[1]", b'{"tokens": {"used": -Infinity}}', b"[" * 100_000, b'"\xff"')
NO_SCORES = [*map(parquet, SUMMARIES), parquet(b'{"ppl": 3.0}', digest=b"another"), b"nats\n1.5\n"]


@pytest.mark.parametrize("content", NO_SCORES, ids=range(len(NO_SCORES)))
@pytest.mark.parametrize("packed", [False, True])
def test_files_that_hold_no_score(store: ScoreStore, content: bytes, packed: bool) -> None:
    store.folder.mkdir()
    store.path("web", ()).write_bytes(content)
    store.path("text", ()).write_bytes(parquet(b'{"ppl": 1}'))
    if packed:
        store.pack()
    assert summary(store, "web") is None
    assert summary(store, "text") == {"ppl": 1}


def test_no_damage_gives_another_score(held: ScoreStore) -> None:
    """Bits flipped, bytes zeroed, the end cut off: the score that was stored, or none."""
    dice = random.Random(0)
    (file,) = held.folder.iterdir()
    content, found = file.read_bytes(), 0
    for _ in range(500):
        damaged, place = bytearray(content), dice.randrange(len(content))
        damaged[place] ^= 1 << dice.randrange(8)
        if dice.random() < 0.3:
            damaged[place : place + 20] = bytes(20)
        file.write_bytes(damaged[: place + 1] if dice.random() < 0.2 else damaged)
        read = got(held, "web")
        if read is not None:
            found += 1
            assert (read.table, read.summary) == (score(1.0).table, {"ppl": 1.0})
    assert 0 < found < 250


def test_what_cannot_be_read_is_not_called_damaged(store: ScoreStore) -> None:
    """A folder in a file's place, and a file that may not be read, stop in their own words."""
    path, archive = store.path("web", ()), store.folder / "a.zip"
    for place in (path, archive):
        place.mkdir(parents=True)
        with pytest.raises(IsADirectoryError, match=place.name[:4]):
            got(store, "web")
        if place == path:
            with pytest.raises(OutputError, match="is not a file"):
                store.put("web", (), score(1.0))
        place.rmdir()
    store.put("web", (), score(1.0))
    denied = PermissionError(errno.EACCES, "Permission denied", str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", raising(denied))
        with pytest.raises(PermissionError, match="denied"):
            got(store, "web")
    assert summary(store, "web")
    assert names(store) == [".parquet"]


def test_an_archive_that_another_job_sets_aside(
    store: ScoreStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("web", (), score(1.0))
    store.pack()
    listed = {"*.zip": [store.folder / "0.zip", *store.folder.glob("*.zip")], "*.parquet": []}
    monkeypatch.setattr(Path, "glob", lambda _, pattern: iter(listed[pattern]))
    assert summary(store, "web")


KEY = {"protocol": "1", "data": {"b": "2", "a": "1"}}
SAME = {"data": {"a": "1", "b": "2"}, "protocol": "1"}


def part(*keys: str) -> StoredScore:
    return StoredScore(pa.table({"key": list(keys), "value": [len(keys)] * len(keys)}), {})


@pytest.mark.parametrize(
    ("item", "keys", "found", "missing"),
    [("z", "23", "z", ""), ("a", "123", "az", ""), ("new", "14", "a", "4"), ("new", "", "", "")],
)
def test_rows_are_found_under_every_name_and_the_own_first(
    store: ScoreStore, item: str, keys: str, found: str, missing: str
) -> None:
    store.put_part("a", KEY, part("1", "2"))
    store.pack()
    store.put_part("z", KEY, part("2", "3"))
    store.put_part("m", {**KEY, "protocol": "2"}, part("4"))
    wanted, parts = set(keys), ""
    for name, one in store.holding(store.prefix(item, SAME), wanted):
        parts += name.partition("-")[0]
        wanted.difference_update(one.table["key"].to_pylist())
    assert (parts, wanted) == (found, set(missing))


def test_a_score_is_found_under_another_name(store: ScoreStore, tmp_path: Path) -> None:
    for name in ("web", "text"):
        store.put(name, KEY, score(1.0))
    assert store.find("web", SAME) == store.path("web", KEY).name
    store.path("web", KEY).write_bytes(b"damaged")
    assert store.find("web", SAME) == store.path("text", KEY).name
    store.pack()
    assert store.find("new", SAME) == store.path("text", KEY).name
    assert store.find("web", {**KEY, "protocol": "2"}) is None
    assert ScoreStore(tmp_path, "other").find("web", KEY) is None


@pytest.mark.parametrize("packed", [False, True])
def test_folders_that_were_exchanged(
    tmp_path: Path, packed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The scores of one checkpoint are never another's; they are scored again beside them."""
    stores = [ScoreStore(tmp_path, name) for name in ("one", "two")]
    for number, store in enumerate(stores):
        store.put("web", KEY, score(float(number)))
        if packed:
            store.pack()
    (tmp_path / "one").rename(tmp_path / "kept")
    (tmp_path / "two").rename(tmp_path / "one")
    (tmp_path / "kept").rename(tmp_path / "two")
    assert [store.find("web", KEY) for store in stores] == [None, None]
    assert "is of two, not of one; it is not used" in caplog.text
    stores[0].put("web", KEY, score(0.0))
    stores[0].pack()
    found = stores[0].read(str(stores[0].find("web", KEY)))
    assert found is not None
    assert found.table.equals(score(0.0).table)

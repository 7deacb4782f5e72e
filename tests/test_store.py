"""The score store: packed, found again under any name, damaged."""

import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evaluation.store import Rows, ScoreStore, StoredScore


def score(number: float, *keys: str) -> StoredScore:
    keys = keys or ("a",)
    table = pa.table({"key": list(keys), "nats": [number] * len(keys)})
    return StoredScore(table, {"ppl": number})


def put(store: ScoreStore, item: str, number: float) -> str:
    return store.put_part(item, (), score(number))


def got(store: ScoreStore, item: str) -> StoredScore | None:
    names = [name for name in store.names() if name.startswith(f"{item}-")]
    return store.read(names[0]) if names else None


def summary(store: ScoreStore, item: str) -> dict[str, Any] | None:
    found = got(store, item)
    return None if found is None else found.summary


def kinds(store: ScoreStore) -> list[str]:
    return sorted(path.suffix for path in store.folder.iterdir())


@pytest.fixture
def store(tmp_path: Path) -> ScoreStore:
    return ScoreStore(tmp_path, "identity")


@pytest.fixture(params=[False, True], ids=["file", "archive"])
def held(request: pytest.FixtureRequest, store: ScoreStore) -> ScoreStore:
    """A store that holds one score, in a file or an archive."""
    put(store, "web", 1.0)
    if request.param:
        store.pack()
    return store


def test_packed_scores_are_one_file_and_are_found(store: ScoreStore) -> None:
    store.pack()
    first, second = put(store, "first", 1.0), put(store, "second", 2.0)
    store.pack()
    store.pack()
    (archive,) = store.folder.iterdir()
    later = put(store, "later", 3.0)
    assert kinds(store) == [".parquet", ".zip"]
    assert store.holders([first, second]) == [archive]
    assert store.holders([first, later]) == [archive, store.folder / later]
    store.pack()
    assert kinds(store) == [".zip", ".zip"]
    for item, number in (("first", 1.0), ("second", 2.0), ("later", 3.0)):
        assert summary(store, item) == {"ppl": number}
    assert summary(store, "other") is None


def test_nothing_is_lost_when_two_jobs_pack(store: ScoreStore, tmp_path: Path) -> None:
    """The other packs what both have, and scores one more item, just before this one removes."""
    theirs, unlink = ScoreStore(tmp_path, "identity"), Path.unlink
    put(store, "both", 1.0)

    def meanwhile(path: Path, *, missing_ok: bool) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Path, "unlink", unlink)
            put(theirs, "more", 2.0)
            theirs.pack()
        unlink(path, missing_ok=missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", meanwhile)
        store.pack()
    assert (summary(store, "both"), summary(store, "more")) == ({"ppl": 1.0}, {"ppl": 2.0})


def raising(error: OSError) -> Callable[..., None]:
    def raises(*_: Any) -> None:
        raise error

    return raises


def test_a_failed_packing_keeps_the_files(store: ScoreStore) -> None:
    put(store, "web", 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.replace", raising(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            store.pack()
    assert kinds(store) == [".parquet"]
    assert summary(store, "web")


def test_a_score_damaged_within_an_archive_is_missing(store: ScoreStore) -> None:
    """The others of the archive are still read, and it is scored once more only."""
    put(store, "a", 1.0)
    put(store, "web", 1.0)
    store.pack()
    (archive,) = store.folder.glob("*.zip")
    content = bytearray(archive.read_bytes())
    content[100] ^= 1  # in the first
    archive.write_bytes(content)
    assert summary(store, "a") is None
    assert summary(store, "web")
    put(store, "a", 1.0)
    store.pack()
    assert kinds(store) == [".zip", ".zip"]
    assert summary(store, "a")


def test_no_damage_gives_another_score(held: ScoreStore) -> None:
    """Bits flipped, bytes zeroed, the end cut off: the score that was stored, or none."""
    dice = random.Random(0)
    (file,) = held.folder.iterdir()
    content, found = file.read_bytes(), 0
    for _ in range(300):
        damaged, place = bytearray(content), dice.randrange(len(content))
        damaged[place] ^= 1 << dice.randrange(8)
        if dice.random() < 0.3:
            damaged[place : place + 20] = bytes(20)
        file.write_bytes(damaged[: place + 1] if dice.random() < 0.2 else damaged)
        read = got(held, "web")
        if read is not None:
            found += 1
            assert (read.table, read.summary) == (score(1.0).table, {"ppl": 1.0})
    assert found < 150
    assert kinds(held) in ([".damaged"], [".damaged", file.suffix])


def test_what_cannot_be_read_is_not_called_damaged(held: ScoreStore) -> None:
    denied = PermissionError(errno.EACCES, "Permission denied")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", raising(denied))
        patch.setattr("zipfile.ZipFile", raising(denied))
        with pytest.raises(PermissionError, match="denied"):
            got(held, "web")
    assert summary(held, "web")


KEY = {"protocol": "1", "data": {"b": "2", "a": "1"}}
SAME = {"data": {"a": "1", "b": "2"}, "protocol": "1"}


@pytest.mark.parametrize(
    ("item", "keys", "found", "missing"),
    [("z", "23", "z", ""), ("a", "123", "az", ""), ("new", "14", "a", "4"), ("new", "", "", "")],
)
def test_rows_are_found_under_every_name_and_the_own_first(
    store: ScoreStore, item: str, keys: str, found: str, missing: str
) -> None:
    store.put_part("a", KEY, score(1.0, "1", "2"))
    store.pack()
    store.put_part("z", KEY, score(2.0, "2", "3"))
    store.put_part("m", {**KEY, "protocol": "2"}, score(3.0, "4"))
    rows = Rows(store, item, SAME)
    assert rows.lacking(keys) == list(missing)
    assert "".join(name.partition("-")[0] for name in rows.used) == found


def test_an_incomplete_row_is_lacking_until_a_complete_one_is_added(store: ScoreStore) -> None:
    rows = Rows(store, "web", KEY, lambda row: row["nats"] > 1)
    for number in (1.0, 2.0):
        assert rows.lacking("ab") == ["a", "b"]
        rows.add(score(number, "a", "b"))
        store.pack()
    assert rows.lacking("abc") == ["c"]
    found, _ = store.find_rows(
        rows.prefix, "ab", lambda row, _: row["nats"] if row["nats"] > 1 else None
    )
    assert found == {"a": 2.0, "b": 2.0}


@pytest.mark.parametrize("packed", [False, True])
def test_folders_that_were_exchanged(tmp_path: Path, packed: bool) -> None:
    """The scores of one checkpoint are never another's; they are scored again beside them."""
    stores = [ScoreStore(tmp_path, name) for name in ("one", "two")]
    for number, store in enumerate(stores):
        put(store, "web", float(number))
        if packed:
            store.pack()
    (tmp_path / "one").rename(tmp_path / "kept")
    (tmp_path / "two").rename(tmp_path / "one")
    (tmp_path / "kept").rename(tmp_path / "two")
    assert [Rows(store, "web", ()).lacking("a") for store in stores] == [["a"], ["a"]]
    put(stores[0], "web", 0.0)
    stores[0].pack()
    assert Rows(stores[0], "web", ()).lacking("a") == []

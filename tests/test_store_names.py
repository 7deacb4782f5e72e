"""What is stored under a key is found whatever the item was called; its own name comes first."""

from pathlib import Path

import pyarrow as pa

from evaluation.store import ScoreStore, StoredScore

KEY = {"protocol": "1", "data": {"b": "2", "a": "1"}}
SAME = {"data": {"a": "1", "b": "2"}, "protocol": "1"}


def part(*keys: str) -> StoredScore:
    return StoredScore(pa.table({"key": list(keys), "value": [len(keys)] * len(keys)}), {})


def held(store: ScoreStore, item: str, *keys: str) -> tuple[list[str], set[str]]:
    """The items in whose parts rows were found, and what was found nowhere."""
    wanted, names = set(keys), []
    for name, one in store.holding(store.prefix(item, SAME), wanted):
        names.append(name.partition("-")[0])
        wanted.difference_update(one.table["key"].to_pylist())
    return names, wanted


def test_rows_are_found_under_every_name_and_the_own_first(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path, "identity")
    store.put_part("a", KEY, part("1", "2"))
    store.pack()
    store.put_part("z", KEY, part("2", "3"))
    store.put_part("m", {**KEY, "protocol": "2"}, part("4"))
    assert held(store, "z", "2", "3") == (["z"], set())
    assert held(store, "a", "1", "2", "3") == (["a", "z"], set())
    assert held(store, "new", "1", "4") == (["a"], {"4"})
    assert held(store, "new") == ([], set())


def test_a_score_is_found_under_another_name(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path, "identity")
    for name in ("web", "text"):
        store.put(name, KEY, StoredScore(pa.table({"nats": [1.0]}), {"name": name}))
    assert store.find("web", SAME) == store.path("web", KEY).name
    store.path("web", KEY).write_bytes(b"damaged")
    assert store.find("web", SAME) == store.path("text", KEY).name
    store.pack()
    assert store.find("new", SAME) == store.path("text", KEY).name
    assert store.find("web", {**KEY, "protocol": "2"}) is None

"""What a person does to a file of keys by mistake: a place in a tree, and a change of it."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import strategies as st

Place = tuple[Any, ...]
TWICE = "STANDS-TWICE-"
"""Begins a key of a tree that is written down without it, as no tree holds a key twice."""

ODD: list[Any] = [
    *(0, -1, 7, 0.5, 1e-308, 1e308, 10**30, 2**63, float("nan"), float("inf")),
    *("", " ", "x", "nowhere at all", "数据", "=1+1", "5", "2026-01-01", "../x", "-rf", "a{b}"),
    *("$NOT_SET/x", "s3://a/b", "n" * 3000, "{{ x", "{% if %}", "(", "1 / 0"),
    *(None, True, False, [], {}, [None], [[]], ["x", "x"], {"x": 1}, {5: 5}, {"x": {"y": []}}),
]


def places(tree: Any, above: Place = ()) -> Iterator[Place]:
    """Every key and index below a tree."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from places(value, (*above, key))


def at(tree: Any, place: Place) -> Any:
    for key in place:
        tree = tree[key]
    return tree


@st.composite
def mutated(draw: st.DrawFn, tree: Any, most: int = 3) -> Any:
    """A tree after one to `most` mistakes."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, most))):
        known = list(places(tree))
        if known:
            _mistake(draw, tree, draw(st.sampled_from(known)), known)
    return tree


def _mistake(draw: st.DrawFn, tree: Any, place: Place, known: list[Place]) -> None:
    *above, key = place
    holder = at(tree, tuple(above))
    value = holder[key]
    changes = ["drop", "odd", "odd", "odd", "other", "nest", "rename", "twice"]
    match draw(st.sampled_from(changes)), holder:
        case "odd", _:
            holder[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        case "other", _:  # what is right at another place
            holder[key] = copy.deepcopy(at(tree, draw(st.sampled_from(known))))
        case "nest", _:
            holder[key] = {"x": value}
        case "twice", list():
            holder.insert(key, copy.deepcopy(value))
        case "twice", dict():
            holder[f"{TWICE}{key}"] = copy.deepcopy(draw(st.sampled_from([value, None])))
        case "rename", dict():
            del holder[key]
            holder[draw(st.sampled_from(["colour", "", 5, True, None, f"{key}s"]))] = value
        case _:
            del holder[key]


def written(tree: Any) -> str:
    """A tree as YAML."""
    text: str = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=False)
    return text.replace(TWICE, "")


def as_json(tree: Any) -> str:
    return json.dumps(tree).replace(TWICE, "")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes of a file that was cut, overwritten in a part, or mistaken for another."""
    place = draw(st.integers(0, max(len(content) - 1, 0)))
    changed = bytes([content[place] ^ draw(st.integers(1, 255))]) if content else b""
    damages = [
        *(content[:place], content[:place] + changed + content[place + 1 :]),
        *(content[:place] + bytes(len(content) - place), b"", b"error: no space left\n"),
        *(b"PK\x03\x04", b"{}", b"null", b"PAR1"),
    ]
    return draw(st.sampled_from(damages))

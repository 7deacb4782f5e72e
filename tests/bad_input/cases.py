"""Reads the table of bad inputs: cases one by one, and families of keys × values."""

import functools
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ENDS = ("refused", "fine", "either")


@dataclass(frozen=True)
class Case:
    """A change, a command, and how it must end.

    Args:
        do: Lines that change the world: shell after `$ `, else a call of `changes`.
        run: Shell line with `evaluation` and `snakemake`.
        end: `refused`: in one sentence with all of `words`. `fine`: exit code 0, and the numbers of the
            untouched world unless `other_numbers`. `either`: one of these, for the reason given.
            `warned`: one of these, and its output has all of `words`.
        cold: The command is a process of its own, as limits and closed files are not passed on.
    """

    kind: str
    name: str
    do: tuple[str, ...]
    run: str
    end: str
    words: tuple[str, ...] = ()
    reason: str = ""
    other_numbers: bool = False
    cold: bool = False
    seconds: float = 60.0

    @property
    def needs_root(self) -> bool:
        return any("mount " in line for line in (*self.do, self.run))


def all_cases() -> list[Case]:
    """Every case of every table, in the order of the files."""
    found = [case for path in sorted((HERE / "tables").glob("*.yaml")) for case in _table(path)]
    counts = Counter((case.kind, case.name) for case in found)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"cases of one name: {twice}")
    return found


def _table(path: Path) -> Iterator[Case]:
    content = yaml.safe_load(path.read_text())
    for entry in content.get("cases", []):
        for single in _each(entry):
            yield _case(content, single, content["kind"])
    for family in content.get("families", []):
        yield from _family({**content, **family})


def _each(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The entry with every combination of the values under `each` put into its texts."""
    lists = entry.get("each", {})
    for values in itertools.product(*lists.values()):
        single = {key: value for key, value in entry.items() if key != "each"}
        for name, value in 2 * list(zip(lists, values, strict=True)):  # values may name others
            single = _put(single, "{" + name + "}", str(value))
        yield single


def _put(value: Any, name: str, text: str) -> Any:
    if isinstance(value, str):
        return value.replace(name, text)
    if isinstance(value, list):
        return [_put(item, name, text) for item in value]
    if isinstance(value, dict):
        return {key: _put(item, name, text) for key, item in value.items()}
    return value


def _case(table: dict[str, Any], entry: dict[str, Any], kind: str) -> Case:
    do = [*table.get("do", []), *entry.get("do", [])]
    options = {key: entry[key] for key in ("other_numbers", "cold", "seconds") if key in entry}
    end, words, reason = "refused", entry.get("want", []), ""
    for other in ("fine", "either", "warned"):
        if other in entry:
            end, reason = other, str(entry[other])
    run = entry.get("run", table.get("run", ""))
    name = entry.get("name") or "; ".join([*entry.get("do", []), run][: 2 if "do" in entry else 1])
    return Case(kind, name, tuple(do), run, end, tuple(map(str, words)), reason, **options)


@functools.cache
def _values() -> dict[str, Any]:
    return dict(yaml.safe_load((HERE / "values.yaml").read_text()))


def _of_type(name: str) -> dict[str, tuple[str, Any]]:
    """How each value ends that is tried for a key of this type, and the value, by its name."""
    content = _values()[name]
    found: dict[str, tuple[str, Any]] = {}
    for other in content.get("like", []):
        found |= _of_type(other)
    for end in ENDS:
        own = {title: (end, value) for title, value in content.get(end, {}).items()}
        found = {title: one for title, one in found.items() if title not in own} | own
    return found


def _family(family: dict[str, Any]) -> Iterator[Case]:
    """Every key × values of its type, a few odd pieces of YAML, and the key misspelt and twice.

    All that is right is tried, of the rest one in `one_in`, other ones for the next key.
    """
    every = family.get("one_in", 3)
    for number, (key, name) in enumerate(family["keys"].items()):
        tried = _of_type(name)
        for end in ENDS:
            ends = family.get("right_ends", end) if end == "fine" else end
            chosen = [(title, value) for title, (its, value) in tried.items() if its == end]
            if end != "fine":
                chosen = chosen[number % every :: every]
            if end == "refused":
                chosen += _odd_pieces(number, family.get("few", 3))
            for title, value in chosen:
                yield _of_key(family, key, ends, title, value)
        right = next((value for end, value in tried.values() if end == "fine"), "1")
        if not key.rpartition(".")[2].isdigit() and family.get("misspelt", True):
            for how, word in (("misspelt", _last(key)[:-1]), ("twice", _last(key))):
                yield _of_key(family, key, "refused", how, [right, [word]], how)


def _odd_pieces(number: int, few: int) -> list[tuple[str, Any]]:
    always = list(_values()["any key"]["refused"].items())
    return [always[(few * number + more) % len(always)] for more in range(few)]


def _of_key(
    family: dict[str, Any], key: str, end: str, title: str, value: Any, function: str = "put"
) -> Case:
    """One value of one key, in the file that the family is about."""
    file, run = family["file"], family["run"]
    text, words = value if isinstance(value, list) else (value, [_last(key)])
    return Case(
        kind=family["kind"],
        name=f"{family.get('about', '')}{key}: {title}",
        do=(*family.get("do", []), f"{function}({file!r}, {key!r}, {text!r})"),
        run=run if end == "refused" else family.get("right", run),
        end=end,
        words=tuple(word.replace("FILE", file) for word in words) if end == "refused" else (),
        reason="" if end == "refused" else "as documented",
        other_numbers=family.get("other_numbers", False),
    )


def _last(key: str) -> str:
    """The name under which a message speaks of a key."""
    return [name for name in key.split(".") if not name.isdigit()][-1]

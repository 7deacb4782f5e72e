"""Random damage to checkpoints, caches and data: the right answer, or one sentence.

    python -m tests.checkpoints.fuzz [NUMBER] [SEED]

A case copies a sound folder, changes one to three places of it (bytes cut, flipped or put in;
JSON and YAML values replaced by odd ones; files linked, emptied, doubled or swapped for pipes), and
reads it as the commands do. Anything but an EvaluationError on one line, or the right answer, is a
finding, as is a case of more than ten seconds.
"""

import json
import os
import random
import shutil
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evaluation.checkpoints import completeness
from evaluation.errors import EvaluationError

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 10**4, 10**6, 2**31, 2**63, 2**64, -(2**63), 0.5, 2.0, 1e308,
    float("nan"), float("inf"), "", "2", "true", "\ud800", "\0", "..", "../x", "/dev/zero", "a" * 5000,
    [], [0], [1, -1], [[]], {}, {"a": 1}, {"": None}, [None] * 70, "é", "{{ x }}", "\n",
]  # fmt: skip

Damage = Callable[[Path, random.Random], object]


def flip(path: Path, dice: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 1, 2, 8))):
        if content:
            content[place(len(content), dice)] = dice.randrange(256)
    path.write_bytes(content)


def place(length: int, dice: random.Random) -> int:
    """Mostly near the beginning, where headers are."""
    return dice.randrange(min(length, dice.choice((8, 200, 2000, length))))


def cut(path: Path, dice: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: dice.randrange(len(content) + 1)])


def insert(path: Path, dice: random.Random) -> None:
    content = path.read_bytes()
    at = place(len(content) + 1, dice)
    new = dice.choice(
        (b"\0", b"\xff", b"{", b"[" * 10**5, b"\xed\xa0\x80", b'"', b",", b"9" * 5000, b"\n")
    )
    path.write_bytes(content[:at] + new + content[at:])


def link(path: Path, dice: random.Random) -> None:
    path.unlink()
    path.symlink_to(dice.choice((path, path.parent, Path("/dev/zero"), path.parent.parent)))


def values(path: Path, dice: random.Random) -> None:
    """One value of a JSON or YAML file, of a line, or of a safetensors header is replaced."""
    content = path.read_bytes()
    if path.suffix == ".safetensors":
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        new = json.dumps(replaced(header, dice)).encode()
        path.write_bytes(struct.pack("<Q", len(new)) + new + content[8 + length :])
    elif path.suffix == ".yaml":
        path.write_text(yaml.safe_dump(replaced(yaml.safe_load(content), dice)), errors="replace")
    elif path.suffix in (".json", ".jsonl"):
        lines = content.splitlines() if path.suffix == ".jsonl" else [content]
        at = dice.randrange(len(lines))
        lines[at] = json.dumps(replaced(json.loads(lines[at]), dice)).encode()
        path.write_bytes(b"\n".join(lines) + b"\n")
    else:
        flip(path, dice)


def replaced(value: Any, dice: random.Random) -> Any:
    """The value with one part, at a random depth, replaced, left out or renamed."""
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(list(value))
        if dice.random() < 0.1:
            return {name: part for name, part in value.items() if name != key}
        if dice.random() < 0.05:
            return {(f"{name}x" if name == key else name): part for name, part in value.items()}
        return value | {key: replaced(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.7:
        at = dice.randrange(len(value))
        return [*value[:at], replaced(value[at], dice), *value[at + 1 :]]
    return dice.choice(ODD)


DAMAGES: dict[str, tuple[int, Damage]] = {
    "values": (12, values),
    "flip": (5, flip),
    "cut": (3, cut),
    "insert": (3, insert),
    "double": (1, lambda path, _: path.write_bytes(path.read_bytes() * 2)),
    "empty": (1, lambda path, _: path.write_bytes(b"")),
    "remove": (1, lambda path, _: path.unlink()),
    "pipe": (1, lambda path, _: (path.unlink(), os.mkfifo(path))),
    "folder": (1, lambda path, _: (path.unlink(), path.mkdir())),
    "link": (1, link),
}
"""Each with how often it comes."""


@dataclass(frozen=True)
class Target:
    """A sound folder, and how it is read; `exact` says after which damage an answer must be the same.

    A flipped bit of a weight, or another number in a configuration, may well give another answer.
    """

    name: str
    source: Path
    read: Callable[[Path], object]
    exact: Callable[[str], bool] = lambda _: False


def damage(folder: Path, dice: random.Random) -> list[str]:
    done = []
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        files = sorted(
            path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
        )
        small = [path for path in files if path.suffix in (".json", ".yaml", ".jsonl", ".txt")]
        if not files:
            break
        path = dice.choice(small if small and dice.random() < 0.5 else files)
        name = dice.choices(list(DAMAGES), [weight for weight, _ in DAMAGES.values()])[0]
        try:
            DAMAGES[name][1](path, dice)
        except (ValueError, struct.error, yaml.YAMLError, RecursionError, UnicodeError, TypeError):
            continue  # it was damaged already
        done.append(f"{name} {path.relative_to(folder)}")
    return done


def run(targets: list[Target], number: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Counts of what came of the cases, and the findings, which are printed as they come."""
    completeness.FRESH_SECONDS = 0.0  # nobody writes to them any more
    counts: Counter[str] = Counter()
    findings: list[str] = []
    expected = {target.name: target.read(target.source) for target in targets}
    for case in range(number):
        dice = random.Random(f"{seed}/{case}")
        target = targets[case % len(targets)]
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(shutil.copytree(target.source, Path(temporary) / target.source.name))
            done = damage(copy, dice)
            begin = time.monotonic()
            found = list(_problems(target, copy, done, expected[target.name], counts))
            seconds = time.monotonic() - begin
        if seconds > 10:
            found.append(f"{seconds:.0f} seconds")
        for problem in found:
            findings.append(f"{case} {target.name} {done}: {problem}")
            print(findings[-1], flush=True)
    return counts, findings


def _problems(
    target: Target, copy: Path, done: list[str], expected: object, counts: Counter[str]
) -> Iterator[str]:
    """Read a damaged copy; yield what is neither the right answer nor one sentence."""
    try:
        answer = target.read(copy)
    except EvaluationError as error:
        counts["one sentence"] += 1
        if "\n" in str(error) or len(str(error)) > 1500:
            yield f"a long message: {str(error)[:300]}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        yield f"{type(error).__name__}: {str(error)[:300]}"
    else:
        counts["an answer"] += 1
        if all(map(target.exact, done)):
            counts["of these compared"] += 1
            if answer != expected:
                yield "another answer"


def main() -> None:
    from tests.checkpoints.test_fuzz import make_targets

    number, seed = (*map(int, sys.argv[1:]), *(2000, 0)[len(sys.argv) - 1 :])
    with tempfile.TemporaryDirectory() as temporary:
        counts, findings = run(make_targets(Path(temporary)), number, seed)
    print(f"{number} cases: {dict(counts)}, {len(findings)} findings")


if __name__ == "__main__":
    main()

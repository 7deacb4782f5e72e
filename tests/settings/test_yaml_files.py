"""YAML that is wrong, odd or hostile: one sentence that names the file, or the text as it stands."""

import time
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.settings.yaml_files import MAX_BYTES, read_yaml

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MANY = 100_000

REFUSED: list[tuple[str, str | bytes, list[str]]] = [
    ("a key twice", "a: 1\nb: 2\na: 3\n", ["line 3", "'a'", "line 1"]),
    ("a key twice inside", "s:\n  x: 1\n  x: 1\n", ["line 3", "'x'", "line 2"]),
    ("a key twice in braces", "s: {x: 1, x: 2}\n", ["line 1", "'x'"]),
    ("brackets", "[" * MANY, ["levels deep"]),
    ("braces", "{a: " * MANY, ["levels deep"]),
    ("dashes", "- " * MANY + "x", ["levels deep"]),
    ("question marks", "? " * MANY + "x", ["levels deep"]),
    ("indentation", "".join(" " * n + "a:\n" for n in range(300)), ["levels deep"]),
    ("aliases that grow", BOMB, ["aliases", "2,000,000"]),
    ("an alias in itself", "a: &a [*a]\n", ["inside what it repeats"]),
    ("an unknown alias", "a: *b\n", ["not valid YAML", "line 1"]),
    ("a tab", "a:\n\tb: 1\n", ["not valid YAML", "line 2", "tab"]),
    ("not UTF-8", b"a: \xff\n", ["not UTF-8 text (byte 3)"]),
    ("a lone surrogate", 'a: "\\ud800"\n', ["not valid YAML", "line 1"]),
    ("a zero byte", b"a: \x00\n", ["not valid YAML"]),
    ("empty", "", ["is empty"]),
    ("a list at the top", "- a\n", ["top level", "list"]),
    ("two documents", "a: 1\n---\nb: 2\n", ["not valid YAML"]),
    ("an open bracket", "a: [1, 2\n", ["not valid YAML", "line 2"]),
    ("a tag of Python", "a: !!python/object/apply:os.getcwd []\n", ["not valid YAML", "line 1"]),
    ("a tag that is not so", "a: !!bool abc\n", ["not valid YAML", "not of the type", "abc"]),
    ("a number that is none", "a: !!int ''\n", ["not valid YAML"]),
    ("a mapping that is none", "a: !!map [b]\n", ["not valid YAML"]),
    ("a time that is none", "a: !!timestamp b\n", ["not valid YAML", "line 1"]),
    ("bytes", "a: !!binary YQ==\n", ["not valid YAML", "line 1"]),
    ("a merge of a text", "a: {<<: b}\n", ["not valid YAML"]),
    ("two merges", "a: &a {x: 1}\nb: {<<: *a, <<: *a}\n", ["'<<'", "line 2"]),
    ("a number of 5,000 digits", f"a: {'9' * 5000}\n", ["not valid YAML", "digits"]),
    ("a list as a key", "? [a]\n: 1\n", ["not valid YAML"]),
    ("too large", b"#" * (MAX_BYTES + 1), ["larger than 32 MiB"]),
]

READ: list[tuple[str, str | bytes, dict[str, Any]]] = [
    ("a byte order mark", b"\xef\xbb\xbfa: 1\n", {"a": 1}),
    ("a date", "a: 2024-01-31\n", {"a": "2024-01-31"}),
    ("a time", "a: 2024-01-31 10:00:00\n", {"a": "2024-01-31 10:00:00"}),
    ("an alias", "a: &a {x: 1}\nb: *a\n", {"a": {"x": 1}, "b": {"x": 1}}),
    ("a merge", "a: &a {x: 1}\nb: {<<: *a, x: 2}\n", {"a": {"x": 1}, "b": {"x": 2}}),
    ("brackets in a text", f"a: '{'[' * 500}'\n", {"a": "[" * 500}),
    ("Windows' line ends", "a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
    ("astral characters", "a: 😀\n", {"a": "😀"}),
]


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "mine.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "words"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_refused(tmp_path: Path, content: str | bytes, words: list[str]) -> None:
    begin = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        read_yaml(written(tmp_path, content))
    assert time.monotonic() - begin < 20
    assert "\n" not in str(caught.value)
    for word in ["mine.yaml: ", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(("content", "expected"), [c[1:] for c in READ], ids=[c[0] for c in READ])
def test_read(tmp_path: Path, content: str | bytes, expected: dict[str, Any]) -> None:
    assert read_yaml(written(tmp_path, content)) == expected


def test_a_folder_and_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        read_yaml(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        read_yaml(tmp_path / "none.yaml")

"""Tokenizers that are damaged: the sentence names the file, and no type of Python."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.errors import SourceError
from evaluation.prefill.tokenizers import load_tokenizer


def _written(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text)


def _linked(target: str) -> Callable[[Path], object]:
    return lambda file: (file.unlink(), file.symlink_to(target))


def _piped(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _in_added_tokens(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "added_tokens": [5]}))


BOTH = ("tokenizer.json", "tokenizer_config.json")
CASES: list[tuple[str, tuple[str, ...], Callable[[Path], object], str]] = [
    ("null", BOTH, _written("null"), "{file}: is no JSON object; copy"),
    ("a list", BOTH, _written("[]"), "{file}: is no JSON object; copy"),
    ("a pipe", BOTH, _piped, "{file}: cannot be read .it is a pipe, not a file"),
    ("a device", BOTH, _linked("/dev/zero"), "{file}: cannot be read .it is a device"),
    ("a link to nothing", BOTH, _linked("/nowhere"), "{file}: cannot be read .No such"),
    ("a number as token", BOTH[:1], _in_added_tokens, "tokenizer.json or tokenizer_config.json do"),
]


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        pytest.param(file, damage, said, id=f"{file}: {name}")
        for name, files, damage, said in CASES
        for file in files
    ],
)
def test_the_file_is_named(
    tmp_path: Path, fast_folder: Path, file: str, damage: Callable[[Path], object], said: str
) -> None:
    folder = Path(shutil.copytree(fast_folder, tmp_path / "tok"))
    damage(folder / file)
    with pytest.raises(SourceError, match=said.format(file=file)) as caught:
        load_tokenizer(folder, use_fast=True)
    assert "object has no" not in str(caught.value)

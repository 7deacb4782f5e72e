"""Tokenizers that are damaged are named, and no code that comes with one, or a model, is ever run."""

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import LlamaConfig

from evaluation.__main__ import main
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import EvaluationError
from evaluation.prefill.tokenizers import prefill_tokenizer
from evaluation.tokenizers.loading import load_tokenizer
from tests.checkpoints.huggingface import SIZES, save_model
from tests.checkpoints.nanotron import TRAINING, llama, make_checkpoint
from tests.prefill.plans import make_plan

CODE = """
from pathlib import Path
Path(__file__).with_name("sprung").touch()
Path({marker!r}).touch()
from transformers import LlamaConfig as C, LlamaForCausalLM as M, PreTrainedTokenizerFast as T
"""
CLASSES = {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"}
MAP = {**CLASSES, "AutoTokenizer": ["code.T", "code.T"]}


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def asked(*_: object) -> str:
        raise AssertionError("stdin was read")

    monkeypatch.setattr("builtins.input", asked)
    monkeypatch.setattr("sys.stdin", None)
    return tmp_path / "marker"


def trap(folder: Path, marker: Path, name: str, **changes: object) -> Path:
    """Makes a JSON file of a folder point at code in it."""
    (folder / "code.py").write_text(CODE.format(marker=str(marker)))
    path = folder / name
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | {"auto_map": MAP} | changes))
    return folder


def tokenizer(source: Path, tmp_path: Path, marker: Path) -> Path:
    folder = Path(shutil.copytree(source, tmp_path / "tokenizer"))
    return trap(folder, marker, "tokenizer_config.json", tokenizer_class="T")


def model(tmp_path: Path, marker: Path) -> Path:
    save_model(tmp_path / "hf", LlamaConfig(**SIZES))
    return trap(tmp_path / "hf", marker, "config.json", model_type="unheard")


def by_prefill(source: Path, tmp_path: Path, marker: Path) -> object:
    return prefill_tokenizer(make_plan(tmp_path / "cache", tokenizer(source, tmp_path, marker)))


def by_checkpoint(source: Path, tmp_path: Path, marker: Path) -> object:
    """The tokenizer that a checkpoint's config.yaml names, for strings in a file of requests."""
    name = str(tokenizer(source, tmp_path, marker))
    training = TRAINING | {"tokenizer": {"tokenizer_name_or_path": name}}
    make_checkpoint(tmp_path / "7", llama(vocab_size=400), training=training)
    assert main(["inspect", str(tmp_path / "7")]) == 0
    requests, output = tmp_path / "r.jsonl", tmp_path / "out.jsonl"
    requests.write_text('{"context": "a", "continuation": " fox"}\n')
    files = ["--requests", str(requests), "--output", str(output)]
    return main(["loglikelihood", str(tmp_path / "7"), *files])


def by_model(source: Path, tmp_path: Path, marker: Path) -> object:
    return load_model(open_checkpoint(model(tmp_path, marker)))


@pytest.mark.parametrize("way", [by_prefill, by_checkpoint, by_model])
def test_code_of_others_is_never_run(
    way: Callable[[Path, Path, Path], object], tmp_path: Path, marker: Path, fast_folder: Path
) -> None:
    with contextlib.suppress(EvaluationError):
        way(fast_folder, tmp_path, marker)
    assert not marker.exists()
    assert not list(tmp_path.rglob("sprung"))


def test_a_known_kind_is_read_without_its_code(
    tmp_path: Path, marker: Path, slow_folder: Path
) -> None:
    known = trap(model(tmp_path, marker), marker, "config.json", model_type="llama")
    load_model(open_checkpoint(known))
    folder = Path(shutil.copytree(slow_folder, tmp_path / "slow"))
    load_tokenizer(trap(folder, marker, "tokenizer_config.json"), use_fast=False)
    assert not marker.exists()

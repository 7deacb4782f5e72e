"""A tiny tokenizer of each kind, and no way out to the network."""

import socket
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.tokenizers.kinds import PIECES, train_pieces, write_folder

TEXT = [
    "The quick brown fox jumps over the lazy dog, again and again.",
    "Question: who jumps over whom?\nAnswer: the fox, over the dog.",
    "naïve café 日本語 🦊 x = [1, 2, 3]",
] * 5


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any connection is an error: with a mirror, prefill needs none."""

    def refuse(*args: object) -> None:
        raise AssertionError(f"a connection was tried: {args[1:]}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="session")
def fast_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE tokenizer with BOS and EOS."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    folder = tmp_path_factory.mktemp("fast")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def slow_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentencepiece model with byte fallback, as a folder of the hub holds it."""
    options, config = PIECES["llama"]
    folder = tmp_path_factory.mktemp("slow") / "llama"
    return write_folder(folder, config, tokenizer__model=train_pieces(**options))

"""A tokenizer of this project around one that a test made with transformers."""

from pathlib import Path

from transformers import PreTrainedTokenizerBase

from evaluation.tokenizers.config import AddedToken, TokenizerConfig
from evaluation.tokenizers.fast import FastTokenizer


def wrapped(made: PreTrainedTokenizerBase) -> FastTokenizer:
    """The same vocabulary, special and added tokens."""
    special = {key: AddedToken(text) for key, text in made.special_tokens_map.items()}
    config = TokenizerConfig(Path("made"), {}, special, chat_template=made.chat_template)
    return FastTokenizer(made.backend_tokenizer, config)

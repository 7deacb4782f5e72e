"""A tokenizer of this project around one that a test made with transformers."""

from transformers import PreTrainedTokenizerBase

from evaluation.tokenizers.fast import FastTokenizer


def wrapped(made: PreTrainedTokenizerBase) -> FastTokenizer:
    """The same vocabulary, special and added tokens."""
    return FastTokenizer(made)

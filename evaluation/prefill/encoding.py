"""Encode text as token ids, in the same way for every tier.

No special token is ever added by the tokenizer itself: BOS is put in front where the
configuration says so, and nowhere else.
"""

from collections.abc import Sequence
from typing import TypeAlias

from transformers import PreTrainedTokenizerBase

from evaluation.errors import SourceError

AnyTokenizer: TypeAlias = PreTrainedTokenizerBase


def vocabulary_size(tokenizer: AnyTokenizer) -> int:
    """Return the number of rows that an embedding needs.

    Args:
        tokenizer: A fast or slow tokenizer.

    Returns:
        The largest id plus one.
    """
    return int(max(tokenizer.get_vocab().values())) + 1


def bos_ids(tokenizer: AnyTokenizer, prepend_bos: bool) -> list[int]:
    """Return the ids to put before every text.

    Args:
        tokenizer: The stage's tokenizer.
        prepend_bos: Whether the configuration asks for BOS.

    Returns:
        BOS's id, or nothing.

    Raises:
        SourceError: BOS is requested, but the tokenizer has none.
    """
    if not prepend_bos:
        return []
    if tokenizer.bos_token_id is None:
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path} has no BOS token, but `tokenizer.prepend_bos` is "
            "true; set it to false or choose the tokenizer the model was trained with"
        )
    return [int(tokenizer.bos_token_id)]


def encode(tokenizer: AnyTokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return each text's ids as lm-evaluation-harness does: none added, special tokens recognized.

    Args:
        tokenizer: The stage's tokenizer.
        texts: Texts, which may be empty.

    Returns:
        Token ids of each text, in order.
    """
    if not texts:
        return []
    return list(tokenizer(list(texts), add_special_tokens=False)["input_ids"])


def encode_pairs(
    tokenizer: AnyTokenizer, pairs: Sequence[tuple[str, str]]
) -> list[tuple[list[int], list[int]]]:
    """Return the ids of contexts and continuations, divided as lm-evaluation-harness divides them.

    Spaces at the context's end go to the continuation, as most tokenizers put a space into the token
    of the next word. Both are encoded as one text. The continuation's tokens follow after as many tokens
    as the context has by itself; they may lack its first characters where a token spans the border, or
    be empty. Each distinct text is encoded once.

    Args:
        tokenizer: The stage's tokenizer.
        pairs: Contexts, which may be empty, and continuations.

    Returns:
        For each pair, ids of the context, and of the continuation.
    """
    divided = [(context.rstrip(), context + continuation) for context, continuation in pairs]
    texts = list(dict.fromkeys(text for pair in divided for text in pair if text))
    ids = dict(zip(texts, encode(tokenizer, texts), strict=True)) | {"": []}
    return [(ids[alone], ids[whole][len(ids[alone]) :]) for alone, whole in divided]

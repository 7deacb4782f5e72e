"""Encode contexts with their continuations, and put BOS in front of texts, in the same way for every tier.

No tokenizer adds a special token by itself: BOS is put in front where the configuration says so, and
nowhere else.
"""

from collections.abc import Sequence
from typing import NamedTuple

from evaluation.errors import SourceError
from evaluation.tokenizers.base import LoadedTokenizer


class EncodedPair(NamedTuple):
    """Ids of a context and its continuation, and whether a token's border lies between the two."""

    context: list[int]
    continuation: list[int]
    meets: bool


def bos_ids(tokenizer: LoadedTokenizer, prepend_bos: bool) -> list[int]:
    """Return the ids to put before every text: BOS's id, or nothing."""
    if not prepend_bos:
        return []
    if tokenizer.bos_token_id is None:
        raise SourceError(
            f"tokenizer {tokenizer.name_or_path} has no BOS token, but `tokenizer.prepend_bos` is "
            "true; set it to false or choose the tokenizer the model was trained with"
        )
    return [int(tokenizer.bos_token_id)]


def put_before(before: Sequence[int], ids: Sequence[int]) -> list[int]:
    """Return ids with others before them, which are not repeated where the ids begin so already."""
    start = list(before)
    return list(ids) if list(ids[: len(start)]) == start else [*start, *ids]


def encode_pairs(tokenizer: LoadedTokenizer, pairs: Sequence[tuple[str, str]]) -> list[EncodedPair]:
    """Return the ids of contexts and continuations, divided as lm-evaluation-harness divides them.

    Spaces at the context's end go to the continuation, as most tokenizers put a space into the token
    of the next word. Both are encoded as one text. The continuation's tokens follow after as many tokens
    as the context has by itself; they may lack its first characters where a token spans the border, or
    be empty, as may contexts. Each distinct text is encoded once.
    """
    divided = [(context.rstrip(), context + continuation) for context, continuation in pairs]
    texts = list(dict.fromkeys(text for pair in divided for text in pair if text))
    ids = dict(zip(texts, tokenizer.encode(texts), strict=True)) | {"": []}
    encoded = [(ids[alone], ids[whole], len(ids[alone])) for alone, whole in divided]
    return [EncodedPair(alone, whole[n:], whole[:n] == alone) for alone, whole, n in encoded]

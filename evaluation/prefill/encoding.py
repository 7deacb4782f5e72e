"""Contexts and their continuations as token ids, divided as lm-evaluation-harness divides them."""

from collections.abc import Sequence

from evaluation.prefill.tokenizers import AnyTokenizer, encode


def encode_pair(
    tokenizer: AnyTokenizer, context: str, continuation: str
) -> tuple[list[int], list[int]]:
    """Ids of a context and of what follows it; an empty context has no ids."""
    return encode_pairs(tokenizer, [(context, continuation)])[0]


def encode_pairs(
    tokenizer: AnyTokenizer, pairs: Sequence[tuple[str, str]]
) -> list[tuple[list[int], list[int]]]:
    """Ids of many contexts and continuations; each distinct text is encoded once.

    Spaces at the context's end go to the continuation, for most tokenizers put a space into the
    token of the word behind it. Both are encoded as one text, and the continuation is what comes
    after as many tokens as the context has by itself: it may lack its first characters where a
    token spans the border, or be empty.
    """
    divided = [_divide(context, continuation) for context, continuation in pairs]
    texts = list(dict.fromkeys(text for pair in divided for text in pair if text))
    ids = dict(zip(texts, encode(tokenizer, texts), strict=True)) | {"": []}
    return [(ids[alone], ids[whole][len(ids[alone]) :]) for alone, whole in divided]


def _divide(context: str, continuation: str) -> tuple[str, str]:
    """The context without the spaces at its end, and the whole text."""
    return context.rstrip(), context + continuation

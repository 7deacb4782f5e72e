"""A context and its continuation as token ids, divided as lm-evaluation-harness divides them."""

from evaluation.prefill.tokenizers import AnyTokenizer, encode


def encode_pair(
    tokenizer: AnyTokenizer, context: str, continuation: str
) -> tuple[list[int], list[int]]:
    """Ids of a context and of what follows it; an empty context has no ids.

    Spaces at the context's end go to the continuation, for most tokenizers put a space into the
    token of the word behind it. Both are encoded as one text, and the continuation is what comes
    after as many tokens as the context has by itself: it may lack its first characters where a
    token spans the border, or be empty.
    """
    stripped = context.rstrip()
    continuation = context[len(stripped) :] + continuation
    if not stripped:
        return [], encode(tokenizer, [continuation])[0]
    alone, whole = encode(tokenizer, [stripped, stripped + continuation])
    return alone, whole[len(alone) :]

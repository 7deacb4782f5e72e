"""When answers end, by a tokenizer that decodes them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from evaluation.scoring.answers import Stopping

if TYPE_CHECKING:  # transformers take seconds to import, and grading seldom needs them
    from evaluation.prefill.tokenizers import AnyTokenizer


def stopping_with(
    tokenizer: "AnyTokenizer", eos: Iterable[int], strings: Iterable[str]
) -> Stopping:
    """Token ids are decoded with their special tokens, as they are."""

    def decode(tokens: list[int]) -> str:
        return str(
            tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )

    return Stopping(frozenset(eos), tuple(strings), decode)

"""Render conversations with a chat template, as transformers does for every tokenizer."""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.tokenizers.base import LoadedTokenizer


def render_template(
    tokenizer: LoadedTokenizer,
    template: str,
    messages: Sequence[Mapping[str, str]],
    variables: Mapping[str, Any],
    *,
    answer: bool,
) -> str:
    """Return a conversation as text.

    Args:
        tokenizer: Its special tokens are variables of the template.
        answer: Whether the text ends where the next answer begins.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    texts, _ = render_jinja_template(
        conversations=[[dict(message) for message in messages]],
        chat_template=template,
        add_generation_prompt=answer,
        **{**tokenizer.config.variables, **variables},
    )
    return str(texts[0])

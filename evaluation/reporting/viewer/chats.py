"""The turns of a chat, from the prompt that a model got."""

import re
from typing import NamedTuple

ROLES = {"model": "assistant", "human": "user"}

TURNS = (
    re.compile(r"<\|im_start\|>(?P<role>\w+)\n(?P<text>.*?)(?:<\|im_end\|>\n?|\Z)", re.DOTALL),
    re.compile(
        r"<\|start_header_id\|>(?P<role>\w+)<\|end_header_id\|>\s*(?P<text>.*?)(?:<\|eot_id\|>|\Z)",
        re.DOTALL,
    ),
    re.compile(r"<start_of_turn>(?P<role>\w+)\n(?P<text>.*?)(?:<end_of_turn>\n?|\Z)", re.DOTALL),
    re.compile(r"<\|(?P<role>system|user|assistant)\|>\n?(?P<text>.*?)(?=<\||\Z)", re.DOTALL),
)
"""Turns as ChatML, Llama 3, Gemma and Zephyr mark them."""


class ShownTurn(NamedTuple):
    """A turn of a chat; the role is empty for a prompt that is no chat."""

    role: str
    text: str


def turns_of(prompt: str) -> list[ShownTurn]:
    """Return the turns of a prompt in order.

    It is one turn without a role where no markers of a chat account for all of it.
    """
    for pattern in TURNS:
        matches = list(pattern.finditer(prompt))
        outside = pattern.sub("", prompt).replace("<|begin_of_text|>", "").replace("<bos>", "")
        if matches and not outside.strip():
            turns = [
                ShownTurn(ROLES.get(match["role"], match["role"]), match["text"])
                for match in matches
            ]
            return turns if turns[-1].text.strip() else turns[:-1]
    return [ShownTurn("", prompt)]

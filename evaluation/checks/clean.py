"""Checks that an answer has no template tokens, other speakers or loops."""

import re
from collections import Counter
from collections.abc import Sequence

from evaluation.checks.declared import check
from evaluation.checks.text import paragraphs, plain

_TEMPLATE_TOKENS = re.compile(
    r"<\|[^<>\n]{1,40}\|?>|<\|(?:im_|end|start|eot|user|assistant|system)|\|>"
    r"|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_(?:turn|utterance)>|<extra_id_\d+>|<fim_\w+>"
    r"|</?(?:s|bos|eos|pad|unk|mask|sep|cls|human|user|bot|assistant|system)>"
    r"|</?(?:think|thinking|thought|reasoning|scratchpad|reflection|answer|response|output"
    r"|tool_call|tool_response|function_call|tools|inst)>"
    r"|\[/?(?:PAD|UNK|CLS|SEP|EOS|BOS|MASK|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|SYSTEM_PROMPT|END)\]"
    r"|<unused_?\d+>|\[unused\d+\]|<reserved[_\w]*>|[◁◀][^◁◀▷▶\n]{1,40}[▷▶]"
    r"|<0x[0-9A-F]{2}>|[\u0120\u010a](?=\w)|\u2581|\ufffd"
    r"|(?<=\s)(?:USER|ASSISTANT|HUMAN|SYSTEM)[*_]{0,2}:"
    r"|(?<=\s)#{2,4} ?(?:Instruction|Input|Response|User|Human|Assistant|System)s?[ \t]*+:"
)
"""Tokens of chat templates, of thinking and of tools, bytes that are not a character, speakers in a line."""

_ROLE = r"(?:user|human|assistant|system|ai|bot|chatbot|model|gpt|chatgpt|ai assistant|developer)"
_OTHER_SPEAKER = re.compile(
    rf"^[ \t]*+(?:[#>]{{1,6}}+[ \t]*+)?[*_\[(]{{0,3}}{_ROLE}(?: ?\d)?[*_\])]{{0,3}}[ \t]*+(?::|$)"
    r"|^[ \t]*+(?:[*_#]{1,4}+[ \t]*+)?(?:q|question|instructions?|input|prompt|query)"
    r"[*_]{0,2}[ \t]*+:",
    re.IGNORECASE | re.MULTILINE,
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")


@check("clean")
def no_chat_artifacts(text: str) -> bool:
    """no tokens of templates or of thinking, no line of another speaker, not empty."""
    read = plain(text)
    return bool(read.strip()) and not (
        _CONTROL.search(text) or _TEMPLATE_TOKENS.search(read) or _OTHER_SPEAKER.search(read)
    )


_LONGEST_PHRASE = 30
_LONG_PHRASE = 8
"""Words that may not come three times anywhere."""
_UNBROKEN = 60
_RULE_CHARACTERS = set("-=_*#.~|:+")


@check("clean")
def no_repetition(text: str) -> bool:
    """no phrase over and over again, and not empty."""
    pieces = " ".join(paragraphs(text)).casefold().split()
    words = [
        "".join(filter(str.isalnum, piece)) or piece
        for piece in pieces
        if not set(piece) <= _RULE_CHARACTERS
    ]
    phrases = Counter(zip(*(words[start:] for start in range(_LONG_PHRASE)), strict=False))
    return any(map(str.isalnum, "".join(words))) and not (
        any(
            _longest_run(words, size) >= size * copies
            for size in range(1, _LONGEST_PHRASE + 1)
            for copies in [4 if size == 1 else 3 if size <= 3 else 2]  # after the first
        )
        or any(count >= 3 for count in phrases.values())
        or any(_stutters(piece) for piece in pieces if len(piece) >= _UNBROKEN)
    )


def _longest_run(parts: Sequence[str], period: int) -> int:
    """Return the longest run of parts that each equal the part `period` before."""
    longest = run = 0
    for part, before in zip(parts[period:], parts, strict=False):
        run = run + 1 if part == before else 0
        longest = max(longest, run)
    return longest


def _stutters(piece: str) -> bool:
    """Return whether 60 or more characters without a space repeat the same one to ten."""
    return not set(piece) <= _RULE_CHARACTERS and any(
        _longest_run(piece, period) >= _UNBROKEN - period for period in range(1, 11)
    )

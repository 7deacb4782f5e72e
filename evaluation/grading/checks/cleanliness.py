"""Whether an answer is only the answer: no template tokens, other speakers, or loops."""

import re
from collections import Counter
from collections.abc import Sequence

from evaluation.grading.checks.layout import read_item

_TEMPLATE_TOKENS = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:bos|eos|pad|unk)>|\[(?:PAD|UNK|CLS|SEP)\]"
    r"|<(?:start|end)_of_turn>|^#{2,3} ?(?:Instruction|Response|Input|User|Assistant):",
    re.MULTILINE,
)
_OTHER_SPEAKER = re.compile(
    r"^[ \t]*[*_]{0,2}(?:(?:user|human|assistant|system|ai|bot|chatbot)[*_]{0,2}[ \t]*:"
    r"|(?:user|human|assistant)[*_]{0,2}[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_PREAMBLE = re.compile(
    r"(?:sure|certainly|of course|absolutely|great|ok|okay|alright|yes|no problem)\b[*_]{0,2}[!,.:]"
    r"|(?:that's an? |what an? )?(?:great|good|excellent|interesting) question\b"
    r"|here(?:'s| is| are)\b|as an? (?:ai|artificial|language|large)\b"
    r"|i(?:'d| would) be (?:happy|glad)\b|i'm (?:happy|glad) to\b|(?:happy|glad) to help\b"
    r"|thank(?:s| you) for (?:your|asking|the)\b|the (?:answer|response) is\b",
    re.IGNORECASE,
)
_LONGEST_PHRASE = 30
_LONG_PHRASE = 8
_UNBROKEN = 60
_RULE_CHARACTERS = set("-=_*#.~")


def no_chat_artifacts(text: str) -> bool:
    return (
        bool(text.strip()) and not _TEMPLATE_TOKENS.search(text) and not _OTHER_SPEAKER.search(text)
    )


def no_preamble(text: str) -> bool:
    start = text.strip().replace("’", "'").lstrip("*_\"'“")
    return bool(start) and not _PREAMBLE.match(start)


def no_repetition(text: str) -> bool:
    """False for an empty answer and for one that is stuck.

    Stuck is: a word five times in a row, a phrase of two or three words four times, one of up to
    thirty words three times; eight words three times anywhere; a line of three or more words four
    times anywhere, whatever its number in a list; or 60 and more characters without a space that
    repeat up to ten.
    """
    words = [word for word in text.casefold().split() if any(char.isalnum() for char in word)]
    return bool(words) and not (
        any(
            _longest_run(words, size) >= size * _more_copies(size)
            for size in range(1, _LONGEST_PHRASE + 1)
        )
        or _says_thrice(words)
        or _repeats_a_line(text)
        or any(_stutters(piece) for piece in text.split() if len(piece) >= _UNBROKEN)
    )


def _more_copies(size: int) -> int:
    """Copies beyond the first that make a phrase of so many words a loop."""
    return 4 if size == 1 else 3 if size <= 3 else 2


def _longest_run(parts: Sequence[str], period: int) -> int:
    """Most parts in a row that each equal the one `period` before."""
    longest = run = 0
    for index in range(period, len(parts)):
        run = run + 1 if parts[index] == parts[index - period] else 0
        longest = max(longest, run)
    return longest


def _says_thrice(words: list[str]) -> bool:
    starts = range(len(words) - _LONG_PHRASE + 1)
    said = Counter(tuple(words[start : start + _LONG_PHRASE]) for start in starts)
    return any(count >= 3 for count in said.values())


def _repeats_a_line(text: str) -> bool:
    said = Counter(
        (item.text if (item := read_item(line)) else line).strip().casefold()
        for line in text.splitlines()
    )
    return any(count >= 4 and len(line.split()) >= 3 for line, count in said.items())


def _stutters(piece: str) -> bool:
    return not set(piece) <= _RULE_CHARACTERS and any(
        _longest_run(piece, period) >= _UNBROKEN - period for period in range(1, 11)
    )

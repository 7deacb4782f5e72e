"""Checks that an answer has no template tokens, other speakers, preambles or loops."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from evaluation.reading.markdown import read_item
from evaluation.reading.text import plain, without_emphasis

_TEMPLATE_TOKENS = re.compile(
    r"<\|[^<>\n]{1,40}\|?>|<\|(?:im_|end|start|eot|user|assistant|system)|\|>"
    r"|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_(?:turn|utterance)>|<extra_id_\d+>|<fim_\w+>"
    r"|</?(?:s|bos|eos|pad|unk|mask|sep|cls|human|user|bot|assistant|system)>"
    r"|</?(?:think|thinking|thought|reasoning|scratchpad|reflection|answer|response|output"
    r"|tool_call|tool_response|function_call|tools|inst)>"
    r"|\[/?(?:PAD|UNK|CLS|SEP|EOS|BOS|MASK|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|SYSTEM_PROMPT|END)\]"
    r"|<unused_?\d+>|\[unused\d+\]|<reserved[_\w]*>|[◁◀][^◁◀▷▶\n]{1,40}[▷▶]"
    r"|<0x[0-9A-F]{2}>|[\u0120\u010a](?=\w)|\u2581|\ufffd"
)
"""Tokens of chat templates, of thinking and of tools, and bytes that are not a character."""

_ROLE = r"(?:user|human|assistant|system|ai|bot|chatbot|model|gpt|chatgpt|ai assistant|developer)"
_OTHER_SPEAKER = re.compile(
    rf"^[ \t]*+(?:[#>]{{1,6}}+[ \t]*+)?[*_\[(]{{0,3}}{_ROLE}(?: ?\d)?[*_\])]{{0,3}}[ \t]*+(?::|$)"
    r"|^[ \t]*+(?:[*_#]{1,4}+[ \t]*+)?(?:question|instruction|instructions|input|response|prompt|query"
    r"|answer)[*_]{0,2}[ \t]*+:",
    re.IGNORECASE | re.MULTILINE,
)
_SPEAKER_IN_LINE = re.compile(
    r"(?<=\s)(?:USER|ASSISTANT|HUMAN|SYSTEM)[*_]{0,2}:"
    r"|(?<=\s)#{2,4} ?(?:Instruction|Input|Response|User|Human|Assistant|System)s?[ \t]*+:"
)
_OWN_LABEL = re.compile(
    r"\A\W{0,8}(?:(?:the|final|my) )?(?:answer|response)[*_]{0,2}[ \t]*+:", re.IGNORECASE
)
"""`Answer:` at the very start is a label; further down it begins another turn."""
_ASKED_AND_ANSWERED = re.compile(
    r"^[ \t]*+[*_#]{0,4}+[QA]\d{0,2}[*_]{0,2}[ \t]*+:[*_]{0,2}(?=\s)", re.MULTILINE
)
_OTHER_LETTER = re.compile(r"^[ \t]*+[*_]{0,2}[B-PR-Z][*_]{0,2}[ \t]*+[:.]", re.MULTILINE)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f]")

_PREAMBLE = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|definitely|great|ok|okay|alright|all right|yes"
    r"|yep|no problem"
    r"|got it|understood|hello|hi|hey|hi there|hello there|greetings|well|so|right|gladly|with pleasure"
    r"|my pleasure|good (?:morning|afternoon|evening|day)|ah|oh|hmm|thanks|thank you)\b"
    r"(?:[!,.:;–—]| ?- | (?:i|here|there|let|thing)\b)"
    r"|(?:that's an? |what an? )?(?:great|good|excellent|interesting|nice) question\b"
    r"|here(?:'s| is| are| you go)\b|(?:as|i'm|i am|being) an? (?:ai|artificial|language|large)\b"
    r"|i(?:'d| would) (?:be|love|like) (?:happy|glad|to)\b|i(?:'m| am) (?:happy|glad|here) to\b"
    r"|(?:happy|glad) to help\b"
    r"|i(?:'ll| will| can) (?:help|answer|explain|tell|give|gladly)\b|let me\b|let's\b|allow me\b"
    r"|thank(?:s| you) for (?:your|asking|the)\b|(?:the |my )?(?:answer|response|reply)(?: is\b|:)"
    r"|you(?:'ve| have)? asked\b|to answer (?:your|this|the)\b|in (?:response|answer) to\b"
    r"|(?:below|the following) (?:is|are)\b"
    r"|you(?:'re| are) (?:asking|welcome)\b|based on (?:your|the) (?:question|request|prompt)\b"
    r"|regarding your\b",
    re.IGNORECASE,
)
_LONGEST_PHRASE = 30
_LONG_PHRASE = 8
_UNBROKEN = 60
_RULE_CHARACTERS = set("-=_*#.~|:+")
_SIGNS = 12


def _no_chat_artifacts(text: str) -> bool:
    """Return whether an answer has no template tokens and no turn of another speaker."""
    read = _OWN_LABEL.sub("", plain(text))
    return bool(read.strip()) and not (
        _CONTROL.search(text)
        or _TEMPLATE_TOKENS.search(read)
        or _OTHER_SPEAKER.search(read)
        or _SPEAKER_IN_LINE.search(read)
        or (_ASKED_AND_ANSWERED.search(read) and not _OTHER_LETTER.search(read))  # no list
    )


def _no_preamble(text: str) -> bool:
    """Return whether an answer begins without `Sure!`, `Here is …` or the like."""
    start = without_emphasis(plain(text)).lstrip("\"'#>- \t\n")
    start = re.sub(r"\A[^\w\s\"'(]+\s*", "", start)
    return bool(start) and not _PREAMBLE.match(start)


def _no_repetition(text: str) -> bool:
    """Return whether an answer has no loop.

    Loops are: a word five times in a row; a phrase of two or three words four times in a row, or of up
    to thirty words three times; any eight words three times anywhere; a line of three or more words
    four times anywhere (numbers of list items are ignored); a sign without letters twelve times in a
    row; 60 or more characters without a space that repeat the same one to ten. Words are compared
    without punctuation.
    """
    read = plain(text).casefold()
    pieces = read.split()
    words = ["".join(filter(str.isalnum, piece)) for piece in pieces]
    words = [word for word in words if word]
    if not words:
        return False
    numbers = _numbered(words)
    return not (
        any(
            _longest_run(numbers, size) >= size * _more_copies(size)
            for size in range(1, _LONGEST_PHRASE + 1)
        )
        or _repeats_a_phrase(words)
        or _repeats_a_line(read)
        or _longest_run(_numbered(_signs(pieces)), 1) >= _SIGNS
        or any(_stutters(piece) for piece in pieces if len(piece) >= _UNBROKEN)
    )


def _signs(pieces: list[str]) -> list[str]:
    """Return pieces so that only signs (without letters or digits) can be equal; rules never are."""
    return [
        f"{index} {piece}" if _has_word(piece) or set(piece) <= _RULE_CHARACTERS else piece
        for index, piece in enumerate(pieces)
    ]


def _has_word(piece: str) -> bool:
    return any(map(str.isalnum, piece))


def _numbered(parts: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a number for each part, equal for equal parts; shape (parts,)."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(part, len(seen)) for part in parts], np.int64)


def _more_copies(size: int) -> int:
    """Return how many copies after the first make a phrase of `size` words a loop."""
    return 4 if size == 1 else 3 if size <= 3 else 2


def _longest_run(parts: np.ndarray[tuple[int], np.dtype[np.int64]], period: int) -> int:
    """Return the longest run of parts that each equal the part `period` before."""
    if len(parts) <= period:
        return 0
    breaks = np.flatnonzero(parts[period:] != parts[:-period])
    edges = np.concatenate(([-1], breaks, [len(parts) - period]))
    return int(np.diff(edges).max()) - 1


def _repeats_a_phrase(words: list[str]) -> bool:
    starts = range(len(words) - _LONG_PHRASE + 1)
    phrases = Counter(tuple(words[start : start + _LONG_PHRASE]) for start in starts)
    return any(count >= 3 for count in phrases.values())


def _repeats_a_line(text: str) -> bool:
    lines = Counter(
        (item.text if (item := read_item(line)) else line).strip() for line in text.split("\n")
    )
    return any(count >= 4 and len(line.split()) >= 3 for line, count in lines.items())


def _stutters(piece: str) -> bool:
    return not set(piece) <= _RULE_CHARACTERS and any(
        _longest_run(_numbered(piece), period) >= _UNBROKEN - period for period in range(1, 11)
    )

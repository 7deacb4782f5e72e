"""Check that a tokenizer does to some texts what the library does that made the training data.

Ids are compared with those of `tokenizers` reading tokenizer.json, or of SentencePiece reading its model.
An answer behind a prompt must be decoded as it was. The report is stored beside the tokenizer.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import tokenizers

from evaluation.errors import SourceError
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import encode_pairs
from evaluation.tokenizers.files import TOKENIZER_JSON
from evaluation.tokenizers.pieces import PieceTokenizer

REPORT = "self_check.json"

TEXTS = (
    "",
    "a",
    "Hello world",
    " Hello",
    "the quick brown fox; Don't panic!",
    *(f"{' ' * count}return x" for count in range(1, 9)),
    "\tif x:\n\t\treturn [1, 2]",
    "def f(x):\n    if x:\n        return 1\n",
    "one\ntwo\r\nthree\n\n\nfour",
    "1234567890 3.14159 2,048 0x1F",
    "🦊 👩‍👩‍👧‍👦 🇩🇪",
    "日本語のテキスト 中文文本",
    "مرحبا بالعالم",
    "e\u0301 a\u0308 \u00e9 \u00e4",
    "ﬁ ① ½ Å K",
    "trailing  ",
    "  both ends  ",
    "<|im_start|>user\nhi there<|im_end|>\n<|im_start|>assistant\n",
    "[INST] hi [/INST]",
    "a\u00a0b\u200bc\u3000d",
    "x = {'a': [1, 2]}  # comment",
)
"""Texts that tokenizers treat differently; some with BOS and EOS in them are added."""

ANSWERS = (" Paris", "Paris", "    return x + 1\n", "\n\n  x", "日本 🦊", "\tx\r\n", "  two")
PROMPTS = ("def f(x):\n", "Question: who?\nAnswer:", "日本語 🦊", "a")
"""Answers that are decoded behind a prompt."""


def self_check(tokenizer: LoadedTokenizer, folder: Path) -> dict[str, Any]:
    """Return the report: `reference`, each text with its ids under `texts`, and no `remarks` yet."""
    ends = [t for key in ("bos_token", "eos_token") if (t := tokenizer.special.get(key))]
    texts = [*TEXTS, *(text for end in ends for text in (f"{end}Hello", f"Hello {end} x{end}\n"))]
    ids = dict(zip(texts, tokenizer.encode(texts), strict=True))
    if isinstance(tokenizer, PieceTokenizer):
        who, whole = f"SentencePiece {version('sentencepiece')}", tokenizer.whole_tokens
        plain = [text for text, found in ids.items() if not whole.intersection(found)]
        theirs = {text: list(tokenizer.model.encode(text)) for text in plain}
    else:
        who = f"tokenizers {version('tokenizers')} reading {TOKENIZER_JSON}"
        raw = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER_JSON))
        raw.no_truncation()
        theirs = {text: raw.encode(text, add_special_tokens=False).ids for text in ids}
    for text, expected in theirs.items():
        if ids[text] != expected:
            raise SourceError(
                f"tokenizer {tokenizer.name_or_path}: {text!r} becomes {_shown(ids[text])} here, but "
                f"{_shown(expected)} by {who}; write the tokens that only tokenizer_config.json has into "
                "`added_tokens` of tokenizer.json, too, or copy the tokenizer again"
            )
    _check_answers(tokenizer)
    rows = [{"text": text, "ids": ids[text]} for text in ids]
    return {"reference": who, "texts": rows, "remarks": list[str]()}


def bos_remark(tokenizer: LoadedTokenizer, prepend_bos: bool) -> str | None:
    """Return what to write if a tokenizer's own files and `prepend_bos` disagree; None if they agree."""
    if tokenizer.adds_bos == prepend_bos or tokenizer.bos_token_id is None:
        return None
    does = "puts" if tokenizer.adds_bos else "does not put"
    other, same = str(tokenizer.adds_bos).lower(), str(prepend_bos).lower()
    return (
        f"tokenizer {tokenizer.name_or_path} {does} {tokenizer.special['bos_token']} before each text by "
        f"itself, but `tokenizer.prepend_bos` is {same}: if training did as the tokenizer does, write "
        f'`prepend_bos: {other}`; if not, write `"add_bos_token": {same}` into tokenizer_config.json'
    )


def _shown(ids: list[int]) -> str:
    more = f" … {len(ids)} ids" if len(ids) > 24 else ""
    return f"[{', '.join(map(str, ids[:24]))}{more}]"


def _check_answers(tokenizer: LoadedTokenizer) -> None:
    """Raise SourceError if an answer behind a prompt is not decoded as it was encoded."""
    pairs = [(prompt, answer) for prompt in PROMPTS for answer in ANSWERS]
    for (prompt, answer), encoded in zip(pairs, encode_pairs(tokenizer, pairs), strict=True):
        whole = [*encoded.context, *encoded.continuation]
        if not encoded.meets or tokenizer.decode(whole) != prompt + answer:
            continue
        expected = (prompt + answer)[len(prompt.rstrip()) :]  # blanks before it are the answer's
        text = tokenizer.decode_answer(encoded.context, encoded.continuation)
        if text != expected:
            raise SourceError(
                f"tokenizer {tokenizer.name_or_path}: the answer {expected!r} to {prompt!r} is read "
                f"as {text!r} from its ids {_shown(encoded.continuation)}; its decoder is not one "
                "that can be used, copy the tokenizer again"
            )

"""Check that a tokenizer does to some texts what the library does that made the training data.

Ids are compared with those of `tokenizers` reading tokenizer.json, or of SentencePiece reading its model,
and with ids that the user gives. An answer behind a prompt must be decoded as it was. The report is stored
beside the tokenizer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sentencepiece

from evaluation.errors import SourceError
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.check_texts import ANSWERS, PROMPTS, OwnText, texts_with
from evaluation.tokenizers.encoding import encode_pairs
from evaluation.tokenizers.fast import FastTokenizer, read_json
from evaluation.tokenizers.files import TOKENIZER_JSON, find_pieces
from evaluation.tokenizers.pieces import PieceTokenizer

REPORT = "self_check.json"

Encode = Callable[[str], list[int]]

_SHOWN = 24
"""Ids that a message shows."""


def self_check(
    tokenizer: LoadedTokenizer, folder: Path, own_texts: Sequence[OwnText] = ()
) -> dict[str, Any]:
    """Return the report: `reference`, each text with its ids under `texts`, and `remarks`.

    Raises:
        SourceError: When ids or an answer differ; it names the first text.
    """
    texts = [*_texts(tokenizer), *(own_text.text for own_text in own_texts)]
    ids = dict(zip(texts, tokenizer.encode(texts), strict=True))
    for own_text in own_texts:
        if own_text.ids is not None and ids[own_text.text] != list(own_text.ids):
            remedy = "correct the line, or name the tokenizer that gives these ids"
            raise _difference(
                tokenizer,
                own_text.text,
                ids[own_text.text],
                list(own_text.ids),
                own_text.place,
                remedy,
            )
    reference, remarks = _compare(tokenizer, folder, ids)
    _check_answers(tokenizer)
    return {
        "reference": reference,
        "texts": [{"text": text, "ids": ids[text]} for text in ids],
        "remarks": remarks,
    }


def check_again(tokenizer: LoadedTokenizer, report: Mapping[str, Any]) -> None:
    """Compare a loaded tokenizer with the report that prefill stored.

    Raises:
        SourceError: When a text has other ids now.
    """
    rows = report["texts"]
    encoded = tokenizer.encode([row["text"] for row in rows])
    for row, ids in zip(rows, encoded, strict=True):
        if ids != row["ids"]:
            remedy = "install the packages of locks/requirements.lock again, or run prefill anew"
            raise _difference(tokenizer, row["text"], ids, row["ids"], "prefill", remedy)


def bos_remark(tokenizer: LoadedTokenizer, prepend_bos: bool) -> str | None:
    """Return what to write if a tokenizer's own files and `prepend_bos` disagree; None if they agree."""
    if tokenizer.adds_bos == prepend_bos or tokenizer.bos_token_id is None:
        return None
    bos = tokenizer.config.variables.get("bos_token")
    does = "puts" if tokenizer.adds_bos else "does not put"
    other, same = str(tokenizer.adds_bos).lower(), str(prepend_bos).lower()
    return (
        f"tokenizer {tokenizer.name_or_path} {does} {bos} before each text by itself, but "
        f"`tokenizer.prepend_bos` is {same}: if training did as the tokenizer does, write `prepend_bos: "
        f'{other}`; if not, keep it, and write `"add_bos_token": {same}` into tokenizer_config.json'
    )


def _texts(tokenizer: LoadedTokenizer) -> list[str]:
    keys = ("bos_token", "eos_token")
    return texts_with([t for key in keys if (t := tokenizer.config.variables.get(key))])


def _difference(
    tokenizer: LoadedTokenizer, text: str, ours: list[int], theirs: list[int], who: str, remedy: str
) -> SourceError:
    return SourceError(
        f"tokenizer {tokenizer.name_or_path}: {text!r} becomes {_shown(ours)} here, but {_shown(theirs)} by "
        f"{who}; {remedy}"
    )


def _shown(ids: list[int]) -> str:
    more = f" … {len(ids)} ids" if len(ids) > _SHOWN else ""
    return f"[{', '.join(map(str, ids[:_SHOWN]))}{more}]"


def _compare(
    tokenizer: LoadedTokenizer, folder: Path, ids: Mapping[str, list[int]]
) -> tuple[str, list[str]]:
    """Return the name of the library that ids were compared with, and remarks on differences that count."""
    if isinstance(tokenizer, FastTokenizer):
        return _compare_json(tokenizer, folder, ids)
    assert isinstance(tokenizer, PieceTokenizer)
    return _compare_pieces(tokenizer, ids)


def _compare_json(
    tokenizer: FastTokenizer, folder: Path, ids: Mapping[str, list[int]]
) -> tuple[str, list[str]]:
    path = folder / TOKENIZER_JSON
    if not path.exists():
        return "vocab.json and merges.txt alone, as GPT-2 reads them", []
    raw = read_json(path)
    raw.no_truncation()
    raw.no_padding()
    who = f"tokenizers {version('tokenizers')} reading {TOKENIZER_JSON}"
    for text, ours in ids.items():
        theirs = raw.encode(text, add_special_tokens=False).ids
        if ours != theirs:
            added = ", ".join(repr(token) for token in tokenizer.added_by_config)
            remedy = (
                f"the reason is that tokenizer_config.json has the tokens {added}: write them into "
                "`added_tokens` of tokenizer.json, too, or delete them there"
            )
            raise _difference(tokenizer, text, ours, theirs, who, remedy)
    return who, list(_other_model(tokenizer, folder, ids))


def _other_model(
    tokenizer: FastTokenizer, folder: Path, ids: Mapping[str, list[int]]
) -> Iterator[str]:
    """Yield a remark if a SentencePiece model in the folder gives other ids than tokenizer.json."""
    path = find_pieces(folder)
    if path is None:
        return
    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):  # such as tiktoken's vocabulary: not read, so no fault of it
        return
    texts = list(_without_added(tokenizer, ids))
    others = [text for text in texts if model.encode(text) != ids[text]]
    if others:
        yield (
            f"{TOKENIZER_JSON} and {path.name} give other ids for {len(others)} of {len(texts)} "
            f"texts, first for {others[0]!r} ({_shown(ids[others[0]])} and "
            f"{_shown(model.encode(others[0]))}); if training used the latter, set "
            "`tokenizer.use_fast: false`"
        )


def _compare_pieces(
    tokenizer: PieceTokenizer, ids: Mapping[str, list[int]]
) -> tuple[str, list[str]]:
    who = f"SentencePiece {version('sentencepiece')} reading its model"
    texts = list(_without_added(tokenizer, ids))
    theirs = {text: list(tokenizer.model.encode(text)) for text in texts}
    others = [text for text in texts if theirs[text] != ids[text]]
    if not others:
        return who, []
    first = others[0]
    if tokenizer.is_legacy:
        remedy = "copy the tokenizer again"
        raise _difference(tokenizer, first, ids[first], theirs[first], who, remedy)
    return who, [
        f"{len(others)} of {len(texts)} texts are encoded as transformers 4 does, not as "
        f"SentencePiece itself, first {first!r} ({_shown(ids[first])}, not {_shown(theirs[first])}); "
        "if training used SentencePiece "
        'itself, write `"legacy": true` into tokenizer_config.json'
    ]


def _without_added(tokenizer: LoadedTokenizer, texts: Mapping[str, list[int]]) -> Iterator[str]:
    """Yield the texts in which no added token is recognized."""
    for text, ids in texts.items():
        if not tokenizer.whole_tokens.intersection(ids):
            yield text


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

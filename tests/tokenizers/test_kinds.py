"""Each kind of tokenizer encodes any text like the library that made training data, and gives it back."""

import re
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.scoring.answers import Stopping, StopSearch
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.loading import load_tokenizer
from tests.tokenizers.kinds import JSON, PIECES, TURNS

KEEPS_ANY_TEXT = ("gpt2", "gemma.json", "llama", "no dummy prefix", "gemma", "unigram", "no class")
characters = st.characters(exclude_categories=["Cs"])
any_text = st.text(st.one_of(characters, st.sampled_from(" \n\t  x1é日🦊")), max_size=40).filter(
    lambda text: not re.search(r"<\S+>", text)
)
"""Any text but special tokens, which Hypothesis finds in this project's code; others test these."""


@cache
def loaded(folder: Path) -> LoadedTokenizer:
    return load_tokenizer(folder, use_fast=True)


@cache
def raw(folder: Path) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


@cache
def pieces(folder: Path) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


@pytest.mark.parametrize("kind", JSON)
@settings(deadline=None, max_examples=100)
@given(text=any_text, turn=st.booleans())
def test_ids_of_a_json_are_those_of_the_file(
    kinds: dict[str, Path], kind: str, text: str, turn: bool
) -> None:
    text = f"{TURNS[0]}{text}{TURNS[1]}\n" if turn else text
    ours = loaded(kinds[kind])
    assert ours.encode([text]) == [raw(kinds[kind]).encode(text, add_special_tokens=False).ids]


@pytest.mark.parametrize("kind", PIECES)
@settings(deadline=None, max_examples=100)
@given(text=any_text)
def test_ids_of_a_model_are_those_of_sentencepiece(
    kinds: dict[str, Path], kind: str, text: str
) -> None:
    ours, model = loaded(kinds[kind]), pieces(kinds[kind])
    assert ours.encode([text]) == [list(model.encode(text))]
    assert [one.ids.tolist() for one in ours.encode_documents([text])] == ours.encode([text])
    begun = f"{ours.special['bos_token']}{text}"
    assert ours.encode([begun]) == [[model.bos_id(), *model.encode(text)]]
    assert ours.encode_documents([begun])[0].ids.tolist() == list(model.encode(begun))


NOT_KEPT = {ord("▁"): " ", 0: "", 0xFFFD: ""}


@pytest.mark.parametrize("kind", KEEPS_ANY_TEXT)
@settings(deadline=None, max_examples=100)
@given(text=any_text, answer=any_text)
def test_any_text_is_given_back(kinds: dict[str, Path], kind: str, text: str, answer: str) -> None:
    """But for the sign of a broken character, at which a prompt or answer may end."""
    ours, text = loaded(kinds[kind]), text.translate(NOT_KEPT)
    answer = answer.translate(NOT_KEPT)
    prompt, whole = ours.encode([text, text + answer])
    assert ours.decode(whole) == text + answer
    if whole[: len(prompt)] == prompt and text:
        assert ours.decode_answer(prompt, whole[len(prompt) :]) == answer
        assert ours.decode_answer(prompt[-16:], whole[len(prompt) :]) == answer


PROMPT = "def total(values):"
BODY = "\n    result = 0\n    for value in values:\n        result += value\n    return result\n"


def divided(
    tokenizer: LoadedTokenizer, prompt: str, answer: str
) -> tuple[list[int], list[int], str]:
    """Ids of a prompt and its answer, cut at the last token's border in the prompt, and the answer's text."""
    (ids,) = tokenizer.encode([prompt + answer])
    ends = [n for n in range(len(ids) + 1) if prompt.startswith(tokenizer.decode(ids[:n]))]
    end = max(ends)
    return ids[:end], ids[end:], (prompt + answer)[len(tokenizer.decode(ids[:end])) :]


@pytest.mark.parametrize("kind", [*PIECES, *JSON])
def test_a_program_known_by_heart_is_read_as_it_was_written(
    kinds: dict[str, Path], kind: str
) -> None:
    ours = loaded(kinds[kind])
    before, ids, text = divided(ours, PROMPT, f"{BODY}print(1)")
    stopping = Stopping(frozenset(), ("\nprint",), ours.decode_answer)
    search, tokens = StopSearch(stopping, before), list[int]()
    while not search.reached(tokens):
        tokens.append(ids[len(tokens)])
    answer = stopping.answer(before, tokens, "length")
    assert answer.text == text.partition("\nprint")[0]
    assert answer.stop_reason == "stop_string"
    before, ids, text = divided(ours, "Answer: the", " fox jumps")
    search = StopSearch(
        Stopping(frozenset(), (text.partition("x")[0],), ours.decode_answer), before
    )
    assert any(search.reached(ids[: n + 1]) for n in range(len(ids)))


@pytest.mark.parametrize("kind", ["llama", "llama.json", "gemma.json", "mistral.json", "gpt2"])
def test_a_character_that_is_cut_off_harms_no_other(kinds: dict[str, Path], kind: str) -> None:
    ours = loaded(kinds[kind])
    before, ids, text = divided(ours, "Answer:\n", "a\n\n\U0001f600")
    assert ours.decode_answer(before, ids) == text
    for cut in range(1, len(ours.encode(["\U0001f600"])[0])):
        shorter = ours.decode_answer(before, ids[:-cut]).rstrip("\ufffd")
        assert shorter in (text[:-1], text)  # all four bytes are the last tokens, or fewer
    border = next(n for n in range(len(ids)) if ours.decode_answer(before, ids[:n]) == text[:-1])
    inside = [*before, *ids[: border + 1]]  # the first of its bytes are the prompt's
    if len(ids) > border + 1:
        assert ours.decode_answer(inside, ids[border + 1 :]) == "\U0001f600"

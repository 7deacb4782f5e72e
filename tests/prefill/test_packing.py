"""Packing keeps every token in order, counts bytes exactly."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.prefill.slices import pack
from evaluation.prefill.tokenizers import fetch_tokenizer
from evaluation.tokenizers.base import EncodedDocument
from evaluation.tokenizers.fast import byte_ends
from evaluation.tokenizers.loading import load_tokenizer
from tests.prefill.plans import make_plan

BOS, EOS = 0, 1


def piece(ids: list[int]) -> EncodedDocument:
    """A piece in which token n stands for n bytes."""
    return EncodedDocument(np.array(ids, dtype=np.int32), np.array(ids, dtype=np.int32))


documents = st.lists(st.lists(st.integers(2, 250), min_size=1, max_size=30), max_size=20)


@given(documents, st.integers(2, 13), st.integers(1, 40), st.booleans())
def test_blocks_are_the_joined_documents_cut(
    documents: list[list[int]], length: int, blocks: int, bos: bool
) -> None:
    around, pieces = ([BOS] * bos, [EOS]), [piece(ids) for ids in documents]
    tokens, index, dropped = pack(pieces, length=length, blocks=blocks, around=around)
    joined, starts, sizes = list[int](), list[int](), list[int]()
    for ids in documents:
        starts.append(len(joined))
        joined += [BOS] * bos + ids + [EOS]
        sizes += [0] * bos + ids + [0]
    count = min(len(joined) // length, blocks)
    inside = [at for at in starts if at < count * length]
    assert tokens.shape == (count, length)
    assert dropped == len(joined) - count * length or count == blocks
    assert tokens.flatten().tolist() == joined[: count * length]
    assert index["document_starts"].tolist() == inside
    assert index["start_bytes"].tolist() == [sizes[at] for at in inside]
    expected = np.array(sizes[: count * length]).reshape(count, length)[:, 1:].sum(axis=1)
    assert index["block_bytes"].tolist() == expected.tolist()


any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@settings(deadline=None, max_examples=60)
@given(st.lists(any_text, min_size=1, max_size=5))
def test_bytes_of_a_fast_tokenizer_add_up(fast_folder: Path, some: list[str]) -> None:
    tokenizer = load_tokenizer(fast_folder, use_fast=True)
    pieces = tokenizer.encode_documents(some)
    assert [tokenizer.decode(p.ids.tolist()) for p in pieces] == some
    assert [int(p.sizes.sum()) for p in pieces] == [len(text.encode()) for text in some]
    assert all((p.sizes >= 0).all() for p in pieces)


def test_a_character_of_several_tokens_counts_once() -> None:
    def sizes(text: str, *offsets: tuple[int, int]) -> list[int]:
        ends = byte_ends(text, list(offsets))
        found = EncodedDocument.of_ends([0] * len(ends), ends, len(text.encode()))
        return [int(size) for size in found.sizes]

    # 日 lies in tokens 0 and 1, 本 in tokens 1 and 2.
    assert sizes("日本x", (0, 1), (0, 2), (1, 2), (2, 3)) == [3, 3, 0, 1]
    # The tokenizer dropped the spaces: they go to the next token, or to the last.
    assert sizes("  a  b ", (2, 3), (5, 6)) == [3, 4]
    assert sizes("") == []


def test_fingerprint_is_of_the_behaviour(fast_folder: Path, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"chat_template": "{{ messages }}", "padding_side": "left"},
        {"additional_special_tokens": ["zebra"]},
    ]
    found = []
    for number, change in enumerate(changes):
        saved = Path(shutil.copytree(fast_folder, tmp_path / str(number)))
        config = json.loads((saved / "tokenizer_config.json").read_text())
        (saved / "tokenizer_config.json").write_text(json.dumps(config | change))
        found.append(fetch_tokenizer(make_plan(saved / "cache", saved))["fingerprint"])
    assert found[0] == found[1] != found[2]

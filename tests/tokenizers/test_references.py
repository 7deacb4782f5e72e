"""SentencePiece models are read as the slow classes of transformers 4 read them (`make_references.py`)."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.tokenizers.loading import load_tokenizer
from tests.tokenizers.kinds import write_folder
from tests.tokenizers.make_references import FILE, texts

REFERENCES: dict[str, dict[str, Any]] = json.loads(gzip.decompress(FILE.read_bytes()))


@pytest.mark.parametrize("use_fast", [True, False])
@pytest.mark.parametrize("kind", REFERENCES)
def test_ids_are_those_of_transformers_4(tmp_path: Path, kind: str, use_fast: bool) -> None:
    reference = REFERENCES[kind]
    model = base64.b64decode(reference["model"])
    folder = write_folder(tmp_path / "t", reference["config"], tokenizer__model=model)
    ours = load_tokenizer(folder, use_fast=use_fast)
    assert [ours.bos_token_id, ours.eos_token_id] == reference["bos_eos"]
    for text, ids, expected in zip(texts(), ours.encode(texts()), reference["ids"], strict=True):
        assert ids == expected, text

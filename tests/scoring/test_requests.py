import gzip
import json
import os
import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from evaluation.errors import ScoringError
from evaluation.prefill.encoding import encode_pair
from evaluation.scoring.engine.window import Request
from evaluation.scoring.requests import score_file
from tests.scoring import tiny

WORDS = ["<end>", "<unknown>", "the", "cat", "sat", " the", " cat", " sat", " ", "."]


@pytest.fixture(scope="module")
def words() -> PreTrainedTokenizerFast:
    """Splits before spaces; a word with its space is one token, as in GPT-2's vocabulary."""
    model = models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unknown>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def write(path: Path, *rows: object) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def run(path: Path, tokenizer=None, max_length: int = 32) -> list[dict]:
    output = path.with_name("out.jsonl")
    rows = score_file(tiny.engine(), tokenizer, path, output, max_length)
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(written) == rows
    return written


def test_rows_keep_their_order_and_content(tmp_path):
    asked = [{"context_tokens": [1, 2, 3], "continuation_tokens": [i % 5, 6]} for i in (7, 3, 9, 3)]
    written = run(write(tmp_path / "in.jsonl", *asked))
    for row, out in zip(asked, written, strict=True):
        request = Request(tuple(row["context_tokens"]), tuple(row["continuation_tokens"]))
        assert out["logprob"] == pytest.approx(
            tiny.plain_score(tiny.model("llama"), request), abs=1e-4
        )
        assert isinstance(out["is_greedy"], bool)
        assert {key: out[key] for key in row} == row


def test_gzip_and_strings(tmp_path, words):
    path = tmp_path / "in.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps({"context": "the cat ", "continuation": "sat"}) + "\n")
        file.write(json.dumps({"context": "", "continuation": "the cat"}) + "\n")
    first, second = run(path, words)
    model = tiny.model("llama")
    assert first["context"] == "the cat "
    assert first["logprob"] == pytest.approx(
        tiny.plain_score(model, Request((2, 6), (7,))), abs=1e-4
    )
    assert second["logprob"] == pytest.approx(
        tiny.plain_score(model, Request((0,), (2, 6))), abs=1e-4
    )


def test_spaces_move_to_the_continuation(words):
    assert encode_pair(words, "the cat", " sat") == ([2, 6], [7])
    assert encode_pair(words, "the cat ", "sat") == ([2, 6], [7])
    assert encode_pair(words, "", "the") == ([], [2])
    assert encode_pair(words, " ", "cat") == ([], [6])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not valid JSON"),
        ([1], "line 2: expected the keys"),
        ({"context": "a"}, "line 2: expected the keys .* found context$"),
        ({"context": "a", "continuation": "b", "extra": 1}, "found context, continuation, extra"),
        ({"context": "a", "continuation_tokens": [1]}, "line 2: expected the keys"),
        ({"context": "a", "continuation": ""}, "line 2: continuation is empty"),
        ({"context": 1, "continuation": "b"}, "line 2: context must be a string"),
        ({"context_tokens": [1], "continuation_tokens": []}, "continuation_tokens is empty"),
        ({"context_tokens": [-1], "continuation_tokens": [1]}, "must be a list of token ids"),
        ({"context_tokens": [True], "continuation_tokens": [1]}, "must be a list of token ids"),
        ({"context": "a", "continuation": "b"}, "line 2: strings need a tokenizer"),
        ({"context_tokens": [], "continuation_tokens": [1]}, "line 2: an empty context"),
        ({"context_tokens": [1], "continuation_tokens": [99]}, "line 2: it holds the token 99"),
        ({"context_tokens": [1], "continuation_tokens": [1] * 33}, "line 2: .* window of 32"),
    ],
)
def test_a_bad_row_is_named_and_nothing_written(tmp_path, row, message):
    good = {"context_tokens": [1], "continuation_tokens": [2]}
    path = write(tmp_path / "in.jsonl", good, row)
    with pytest.raises(ScoringError, match=message):
        run(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.jsonl"]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ScoringError, match="no such file"):
        run(tmp_path / "missing.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"context": "\xe9", "continuation": "a"}\n')
    with pytest.raises(ScoringError, match="not UTF-8"):
        run(tmp_path / "latin.jsonl")
    row = b'{"context_tokens": [1], "continuation_tokens": [2]}\n'
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(row * 50)[:-9])
    with pytest.raises(ScoringError, match="cannot be unpacked"):
        run(tmp_path / "cut.jsonl.gz")


ODD = {
    "endless digits": (b'{"context_tokens": [' + b"9" * 5000 + b"]}", "line 1: not valid JSON"),
    "brackets": (b"[" * 100_000, "line 1: not valid JSON"),
    "an id of 2^63": (
        b'{"context_tokens": [9223372036854775808], "continuation_tokens": [1]}',
        "line 1: it holds the token 9223372036854775808",
    ),
    "half a letter": (
        b'{"context": "\\ud800", "continuation": "a"}',
        "line 1: context must be a string, in valid Unicode",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_lines(tmp_path, name):
    content, expected = ODD[name]
    (tmp_path / "in.jsonl").write_bytes(content + b"\n")
    with pytest.raises(ScoringError, match=re.escape(expected)):
        run(tmp_path / "in.jsonl")


@pytest.mark.parametrize("file", ["in.jsonl", "in.jsonl.gz"])
def test_pipes_are_not_waited_for(tmp_path, file):
    os.mkfifo(tmp_path / file)
    with pytest.raises(ScoringError, match="it is a pipe, not a file"):
        run(tmp_path / file)

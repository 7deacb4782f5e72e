import gzip
import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from evaluation.errors import ScoringError
from evaluation.files import write_jsonl
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.engine.window import Request
from evaluation.scoring.request_files import read_rows
from evaluation.scoring.requests import prepare
from evaluation.tokenizers.fast import FastTokenizer
from tests.scoring import tiny
from tests.tables import cases
from tests.tokenizers.wrapped import wrapped

WORDS = ["<end>", "<unknown>", "the", "cat", "sat", " the", " cat", " sat", " ", "."]


@pytest.fixture(scope="module")
def words() -> FastTokenizer:
    """Splits before spaces; a word with its space is one token, as in GPT-2's vocabulary."""
    model = models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unknown>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
    return wrapped(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>"))


def write(path: Path, *rows: object) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def run(path: Path, tokenizer=None, max_length: int = 32) -> list[dict]:
    output = path.with_name("out.jsonl")
    rows = read_rows(path)
    requests = prepare(rows, tokenizer, str(path), max_length, tiny.VOCABULARY)
    scores = score_requests(tiny.engine(), requests)
    number = write_jsonl(
        output, [{**row, **score._asdict()} for row, score in zip(rows, scores, strict=True)]
    )
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(written) == number == len(rows)
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


STRINGS = {
    ("the cat", " sat"): Request((2, 6), (7,)),
    ("the cat ", "sat"): Request((2, 6), (7,)),
    ("", "the cat"): Request((0,), (2, 6)),
    (" ", "cat"): Request((0,), (6,)),
}


def test_gzip_and_strings(tmp_path, words):
    """A context's last space moves to the continuation; EOS replaces a context without tokens."""
    path = tmp_path / "in.jsonl.gz"
    asked = [{"context": one, "continuation": other} for one, other in STRINGS]
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in asked).encode()))
    for row, out, request in zip(asked, run(path, words), STRINGS.values(), strict=True):
        plain = tiny.plain_score(tiny.model("llama"), request)
        assert out["logprob"] == pytest.approx(plain, abs=1e-4)
        assert {key: out[key] for key in row} == row


GOOD = b'{"context_tokens": [1], "continuation_tokens": [2]}\n'
PACKED = gzip.compress(GOOD * 50)


@pytest.mark.parametrize(("row", "message"), cases("scoring/request_rows", "rows"))
def test_a_bad_row_is_named_and_nothing_written(tmp_path, row, message):
    good = {"context_tokens": [1], "continuation_tokens": [2]}
    path = write(tmp_path / "in.jsonl", good, row)
    with pytest.raises(ScoringError, match=message) as raised:
        run(path)
    assert len(str(raised.value)) < 500
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.jsonl"]


FILES = [
    ("missing", None, "no such file"),
    ("latin-1", GOOD + b'{"context": "\xe9", "continuation": "a"}\n', "line 2: not UTF-8"),
    ("gzip cut", PACKED[:-9], "damaged gzip data"),
]


@pytest.mark.parametrize(("content", "words"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_files_that_cannot_be_read(tmp_path, content, words):
    path = tmp_path / "in.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScoringError, match=words):
        run(path)
    assert not (tmp_path / "out.jsonl").exists()

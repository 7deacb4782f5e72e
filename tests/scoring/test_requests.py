import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from evaluation.errors import ScoringError
from evaluation.files import write_jsonl
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.requests import prepare, read_rows
from evaluation.scoring.window import Request
from evaluation.tokenizers.fast import FastTokenizer
from tests.scoring import tiny

WORDS = ["<end>", "<unknown>", "the", "cat", "sat", " the", " cat", " sat", " ", "."]


@pytest.fixture(scope="module")
def words() -> FastTokenizer:
    """Splits before spaces; a word with its space is one token, as in GPT-2's vocabulary."""
    model = models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unknown>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
    return FastTokenizer(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>"))


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


STRINGS = {
    ("the cat", " sat"): Request((2, 6), (7,)),
    ("the cat ", "sat"): Request((2, 6), (7,)),
    ("", "the cat"): Request((0,), (2, 6)),
    (" ", "cat"): Request((0,), (6,)),
}


def test_strings(tmp_path, words):
    """In their order; a context's last space moves to the continuation, EOS replaces one without tokens."""
    path = tmp_path / "in.jsonl"
    asked = [{"context": one, "continuation": other} for one, other in STRINGS]
    path.write_text("".join(json.dumps(row) + "\n" for row in asked))
    for row, out, request in zip(asked, run(path, words), STRINGS.values(), strict=True):
        plain = tiny.plain_score(tiny.model("llama"), request)
        assert out["logprob"] == pytest.approx(plain, abs=1e-4)
        assert isinstance(out["is_greedy"], bool)
        assert {key: out[key] for key in row} == row


BAD: dict[str, tuple[object, str]] = {
    "cut": ("{", "line 2: not valid JSON"),
    "a list": ([1], "line 2: expected the keys"),
    "a key lacks": ({"context": "a"}, "line 2: expected the keys"),
    "both kinds": ({"context": "a", "continuation_tokens": [1]}, "line 2: expected the keys"),
    "nothing asked": ({"context": "a", "continuation": ""}, "line 2: continuation must be"),
    "number for text": ({"context": 1, "continuation": "b"}, "line 2: context must be a string"),
    "true as id": ({"context_tokens": [True], "continuation_tokens": [1]}, "a list of token ids"),
    "no tokenizer": ({"context": "a", "continuation": "b"}, "line 2: strings need a tokenizer"),
    "no context": ({"context_tokens": [], "continuation_tokens": [1]}, "line 2: an empty context"),
    "no such token": (
        {"context_tokens": [1], "continuation_tokens": [2**32 + 1]},
        r"line 2: has token 4.29497e\+09, but the model's embedding has only 40 rows",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_named_and_nothing_written(tmp_path, name):
    row, message = BAD[name]
    good = {"context_tokens": [1], "continuation_tokens": [2]}
    path = write(tmp_path / "in.jsonl", good, row)
    with pytest.raises(ScoringError, match=message):
        run(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.jsonl"]

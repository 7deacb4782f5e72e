"""Scores a file of requests: JSONL in, the same rows with `logprob` and `is_greedy` out.

A row holds either two strings, `context` and `continuation`, or two lists of token ids,
`context_tokens` and `continuation_tokens`, and nothing else.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import ScoringError
from evaluation.files import check_regular, write_jsonl
from evaluation.prefill.encoding import encode_pair
from evaluation.prefill.tokenizers import AnyTokenizer, load_tokenizer
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_requests
from evaluation.scoring.engine.window import Request, fit_requests
from evaluation.scoring.session import choose_numerics
from evaluation.settings.config import Scoring

TEXT = {"context", "continuation"}
TOKENS = {"context_tokens", "continuation_tokens"}

Row = dict[str, Any]


def score_request_file(
    checkpoint_path: Path,
    requests_path: Path,
    output_path: Path,
    *,
    tokenizer: str | None,
    dtype: str,
    device: str,
    max_length: int | None,
    use_mup: bool | None = None,
) -> int:
    """Scores a file with a checkpoint, loading a tokenizer if the file needs one; returns rows.

    The context window is the sequence length the checkpoint was trained on, unless given.

    Raises:
        CheckpointError, SourceError, ScoringError: name the file, and the line.
    """
    rows = read_rows(requests_path)
    checkpoint = open_checkpoint(checkpoint_path, use_mup=use_mup)
    loaded = _tokenizer(tokenizer, checkpoint) if any(map(_needs_tokenizer, rows)) else None
    scoring = Scoring.model_validate({"device": device, "dtype": dtype})
    numerics = choose_numerics(scoring, checkpoint)
    model = load_model(checkpoint, dtype=numerics.dtype, device=numerics.device)
    row_tokens = scoring.row_tokens if numerics.device == "cuda" else scoring.cpu_row_tokens
    engine = Engine(model, row_tokens=row_tokens, device=numerics.device)
    window = max_length or checkpoint.sequence_length or model.config.max_position_embeddings
    return score_file(engine, loaded, requests_path, output_path, window)


def score_file(
    engine: Engine,
    tokenizer: AnyTokenizer | None,
    requests_path: Path,
    output_path: Path,
    max_length: int,
) -> int:
    """Scores a file in its order; the output is there whole or not at all. Returns rows.

    Raises:
        ScoringError: names the file and line of a row that is wrong or cannot be scored.
    """
    rows = read_rows(requests_path)
    requests = [
        _request(row, tokenizer, f"{requests_path}: line {line}")
        for line, row in enumerate(rows, start=1)
    ]
    for request in requests:
        highest = max((*request.context, *request.continuation), default=0)
        if highest >= engine.vocab_size:
            raise ScoringError(
                f"{request.name}: it holds the token {highest}, but the model's embedding has "
                f"{engine.vocab_size} rows; use the tokenizer that the model was trained with"
            )
    prefix = _prefix_token(tokenizer)
    for request in requests:
        if not request.context and prefix is None:
            raise ScoringError(
                f"{request.name}: an empty context is replaced by BOS or EOS, but there is no "
                "tokenizer that has one; give one (--tokenizer), or a context"
            )
    fitted = fit_requests(requests, max_length=max_length, prefix_token=prefix or 0)
    scores = score_requests(engine, fitted.requests, progress="requests")
    return write_jsonl(
        output_path,
        ({**row, **score._asdict()} for row, score in zip(rows, scores, strict=True)),
    )


def read_rows(path: Path) -> list[Row]:
    """Reads and checks every line; raises ScoringError naming the first that is wrong."""
    return [_checked(text, f"{path}: line {line}") for line, text in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        check_regular(path)  # a pipe could be read only once, and might never be written to
        with opened(path, "rt", encoding="utf-8") as file:
            yield from enumerate(file, start=1)
    except FileNotFoundError:
        raise ScoringError(f"{path}: no such file; give a JSONL file of requests") from None
    except UnicodeDecodeError as error:
        raise ScoringError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ScoringError(f"{path}: cannot be unpacked ({error}); write it again") from None
    except OSError as error:
        raise ScoringError(
            f"{path}: cannot be read ({error.strerror}); give a file that you can read"
        ) from None


def _checked(text: str, place: str) -> Row:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScoringError(f"{place}: not valid JSON ({error}); one object on each line") from None
    if not isinstance(row, dict) or row.keys() not in (TEXT, TOKENS):
        found = ", ".join(row) if isinstance(row, dict) else type(row).__name__
        raise ScoringError(
            f"{place}: expected the keys context and continuation, or context_tokens and "
            f"continuation_tokens, and no others; found {found or 'none'}"
        )
    is_right = _is_text if row.keys() == TEXT else _is_tokens
    for key, value in row.items():
        if not is_right(value):
            kind = "a string, in valid Unicode" if row.keys() == TEXT else "a list of token ids"
            raise ScoringError(f"{place}: {key} must be {kind}")
        if not value and key.startswith("continuation"):
            raise ScoringError(f"{place}: {key} is empty, there is nothing to score; leave it out")
    return row


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int and token >= 0 for token in value)


def _needs_tokenizer(row: Row) -> bool:
    return "context" in row or not row["context_tokens"]


def _request(row: Row, tokenizer: AnyTokenizer | None, name: str) -> Request:
    if row.keys() == TOKENS:
        return Request(tuple(row["context_tokens"]), tuple(row["continuation_tokens"]), name)
    if tokenizer is None:
        raise ScoringError(f"{name}: strings need a tokenizer; give one (--tokenizer)")
    context, continuation = encode_pair(tokenizer, row["context"], row["continuation"])
    return Request(tuple(context), tuple(continuation), name)


def _prefix_token(tokenizer: AnyTokenizer | None) -> int | None:
    """What stands before an empty context: BOS, or EOS if there is none."""
    if tokenizer is None:
        return None
    token: int | None = tokenizer.bos_token_id
    if token is None:
        token = tokenizer.eos_token_id
    return token


def _tokenizer(name: str | None, checkpoint: Checkpoint) -> AnyTokenizer:
    if name is None and checkpoint.kind == "huggingface":
        name = str(checkpoint.path)
    name = name or checkpoint.tokenizer_name
    if name is None:
        raise ScoringError(
            f"{checkpoint.path} names no tokenizer, and the requests hold strings; give one "
            "(--tokenizer)"
        )
    return load_tokenizer(name, use_fast=True)

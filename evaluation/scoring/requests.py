"""Score a file of requests: read JSONL, and write the same rows with `logprob` and `is_greedy`.

A row has either two strings, `context` and `continuation`, or two lists of token ids,
`context_tokens` and `continuation_tokens`, and no other key.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.errors import ScoringError
from evaluation.files import is_unicode, read_json, write_jsonl
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.window import Request, Window, prefix_of
from evaluation.settings.computing import Scoring
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import encode_pairs
from evaluation.tokenizers.loading import load_tokenizer

log = logging.getLogger(__name__)

TEXT = {"context", "continuation"}
TOKENS = {"context_tokens", "continuation_tokens"}

RequestRow = dict[str, Any]


def score_request_file(
    checkpoint_path: Path,
    requests_path: Path,
    output_path: Path,
    *,
    tokenizer: str | None,
    dtype: str,
    device: str,
    max_length: int | None,
    use_mup: bool | None,
) -> int:
    """Score a file of requests with a checkpoint; return the number of rows written.

    The output file is opened before the checkpoint is loaded, and appears once it is complete. The tokenizer,
    by default the checkpoint's own, is loaded only if a row has text. The context window is by default that
    of the training. Raises ScoringError for a row that cannot be scored; it names the line.
    """
    rows = read_rows(requests_path)

    def answers() -> Iterator[RequestRow]:
        checkpoint = open_checkpoint(checkpoint_path, use_mup=use_mup)
        needs_one = not all(row.get("context_tokens") for row in rows)
        loaded = _tokenizer(tokenizer, checkpoint) if needs_one else None
        window = max_length or checkpoint.sequence_length
        window = window or checkpoint.model_config.get("max_position_embeddings")
        if window is None:
            raise ScoringError(f"{checkpoint.path} records no sequence length; give --max-length")
        requests = prepare(rows, loaded, str(requests_path), window, checkpoint.vocab_size)
        scoring = Scoring.model_validate({"device": device, "dtype": dtype})
        backend = EngineBackend(scoring, checkpoint, lambda: None)
        scores = backend.within_memory(lambda: score_requests(backend.engine, requests))
        for row, score in zip(rows, scores, strict=True):
            yield {**row, **score._asdict()}

    return write_jsonl(output_path, answers())


def read_rows(path: Path) -> list[RequestRow]:
    """Read and check every line of a file of requests; raise ScoringError for the first wrong one."""
    with open(path, "rb") as lines:
        rows = [_checked(line, f"{path}: line {number}") for number, line in enumerate(lines, 1)]
    if not rows:
        raise ScoringError(f"{path}: holds no requests; give JSONL, one object on each line")
    return rows


def _checked(line: bytes, place: str) -> RequestRow:
    row = read_json(line, place, ScoringError)
    if not isinstance(row, dict) or row.keys() not in (TEXT, TOKENS):
        raise ScoringError(
            f"{place}: expected the keys context and continuation, or context_tokens and "
            "continuation_tokens, and no others"
        )
    for key, value in row.items():
        if key in TEXT:
            is_right = isinstance(value, str) and is_unicode(value)
        else:
            is_right = isinstance(value, list) and all(
                type(one) is int and one >= 0 for one in value
            )
        if not is_right or (not value and key.startswith("continuation")):
            kind = "a string of Unicode characters" if key in TEXT else "a list of token ids"
            raise ScoringError(f"{place}: {key} must be {kind}, that of the continuation not empty")
    return row


def prepare(
    rows: Sequence[RequestRow],
    tokenizer: LoadedTokenizer | None,
    source: str,
    max_length: int,
    vocab_size: int,
) -> list[Request]:
    """Turn rows into requests that fit the window, each with a context; raise ScoringError, with the line."""
    names = [f"{source}: line {line}" for line in range(1, len(rows) + 1)]
    requests = [_request(row, tokenizer, name) for row, name in zip(rows, names, strict=True)]
    for request in requests:
        if (highest := max((*request.context, *request.continuation))) >= vocab_size:
            raise ScoringError(
                f"{request.name}: has token {highest:.6g}, but the model's embedding has only "
                f"{vocab_size} rows; use the tokenizer that the checkpoint was trained with"
            )
    prefix = prefix_of(tokenizer.bos_token_id, tokenizer.eos_token_id) if tokenizer else None
    fitted = [Window(max_length, prefix).fit(one) for one in requests]
    if truncated := sum(is_truncated for _, is_truncated in fitted):
        log.warning(
            "%s: %d of %d contexts do not fit the window of %d tokens and were cut on the left",
            source, truncated, len(requests), max_length,
        )  # fmt: skip
    return [request for request, _ in fitted]


def _request(row: RequestRow, tokenizer: LoadedTokenizer | None, name: str) -> Request:
    if row.keys() == TOKENS:
        return Request(tuple(row["context_tokens"]), tuple(row["continuation_tokens"]), name)
    if tokenizer is None:
        raise ScoringError(f"{name}: strings need a tokenizer; give one (--tokenizer)")
    (pair,) = encode_pairs(tokenizer, [(row["context"], row["continuation"])])
    return Request(tuple(pair.context), tuple(pair.continuation), name)


def _tokenizer(name: str | None, checkpoint: Checkpoint) -> LoadedTokenizer:
    """Load a tokenizer by name; by default the one of the training, or that in the checkpoint's folder."""
    training = checkpoint.training
    revision = training.tokenizer_revision if training and not name else None
    name = name or checkpoint.tokenizer_name or str(checkpoint.path)
    return load_tokenizer(name, use_fast=True, revision=revision)

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
from evaluation.files import is_unicode, read_json, read_lines, write_jsonl
from evaluation.scoring.engine.backend import EngineBackend
from evaluation.scoring.engine.window import Request, fit_requests, prefix_of
from evaluation.settings.computing import Scoring
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import encode_pairs
from evaluation.tokenizers.loading import check_sentence, load_tokenizer

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

    The output file is opened before the checkpoint is loaded, and appears once it is complete.

    Args:
        tokenizer: Name or folder; None: the checkpoint's own. It is loaded only if a row needs it.
        dtype: Dtype that the model runs in, or `auto` as in the configuration.
        device: `cpu`, `cuda` or `auto`.
        max_length: Context window in tokens; None: the length of the sequences in training.
        use_mup: Whether the checkpoint uses µP; None reads it from the checkpoint.

    Raises:
        ScoringError: When `max_length` is below 1, or a row cannot be scored; it names the line.
    """
    if max_length is not None and max_length < 1:
        raise ScoringError(f"--max-length {max_length}: must be at least 1 token, or left out")
    rows = read_rows(requests_path)

    def answers() -> Iterator[RequestRow]:
        checkpoint = open_checkpoint(checkpoint_path, use_mup=use_mup)
        needs_one = not all(row.get("context_tokens") for row in rows)
        loaded = _tokenizer(tokenizer, checkpoint) if needs_one else None
        window = _window(checkpoint, max_length)
        requests = prepare(rows, loaded, str(requests_path), window, checkpoint.vocab_size)
        scoring = Scoring.model_validate({"device": device, "dtype": dtype})
        backend = EngineBackend(scoring, checkpoint, loaded=lambda: None)
        scores = backend.log_likelihoods(requests)
        for row, score in zip(rows, scores, strict=True):
            yield {**row, **score._asdict()}

    return write_jsonl(output_path, answers())


def prepare(
    rows: Sequence[RequestRow],
    tokenizer: LoadedTokenizer | None,
    source: str,
    max_length: int,
    vocab_size: int,
) -> list[Request]:
    """Turn rows into requests that fit the window, each with a context; log the number of truncations.

    Args:
        tokenizer: Encodes strings; None if all rows hold token ids.

    Raises:
        ScoringError: When a row cannot be scored; it names the file and the line.
    """
    names = [f"{source}: line {line}" for line in range(1, len(rows) + 1)]
    requests = [_request(row, tokenizer, name) for row, name in zip(rows, names, strict=True)]
    prefix = None
    if tokenizer is not None:
        prefix = prefix_of(tokenizer.bos_token_id, tokenizer.eos_token_id)
    for request in requests:
        if not request.context and prefix is None:
            raise ScoringError(
                f"{request.name}: an empty context is replaced by BOS or EOS, but no tokenizer with "
                "one of them is given; give one (--tokenizer), or a context"
            )
        if (highest := max((*request.context, *request.continuation))) >= vocab_size:
            raise ScoringError(
                f"{request.name}: has token {highest:.6g}, but the model's embedding has only "
                f"{vocab_size} rows; use the tokenizer that the checkpoint was trained with"
            )
    fitted = fit_requests(requests, max_length=max_length, prefix_token=prefix)
    if fitted.truncated:
        log.warning(
            "%s: %d of %d contexts do not fit the window of %d tokens and were cut on the left",
            source, fitted.truncated, len(requests), max_length,
        )  # fmt: skip
    return fitted.requests


def _window(checkpoint: Checkpoint, max_length: int | None) -> int:
    """Return the context window, in tokens; warn if the model was only trained on shorter sequences."""
    positions = checkpoint.model_config.get("max_position_embeddings")
    trained = checkpoint.sequence_length or (positions if type(positions) is int else None)
    if max_length is None and trained is None:
        raise ScoringError(
            f"{checkpoint.path} does not record its training sequence length; give --max-length"
        )
    if max_length and trained and max_length > trained:
        log.warning(
            "--max-length %d: %s was trained on sequences of %d tokens; its scores of longer ones are "
            "not meaningful", max_length, checkpoint.path, trained,
        )  # fmt: skip
    return max_length or trained or 0


def read_rows(path: Path) -> list[RequestRow]:
    """Read and check every line of a file of requests: at least one.

    Raises:
        ScoringError: When there is no row, or a row is wrong; it names the first such line.
    """
    lines = read_lines(path, ScoringError, "JSONL, one request on each line")
    rows = [_checked(line, f"{path}: line {number}") for number, line in lines]
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
    is_right = _is_text if row.keys() == TEXT else _is_tokens
    for key, value in row.items():
        if not is_right(value) or (not value and key.startswith("continuation")):
            kind = "a string of Unicode characters" if row.keys() == TEXT else "a list of token ids"
            raise ScoringError(f"{place}: {key} must be {kind}, that of the continuation not empty")
    return row


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_unicode(value)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(token) is int and token >= 0 for token in value)


def _request(row: RequestRow, tokenizer: LoadedTokenizer | None, name: str) -> Request:
    if row.keys() == TOKENS:
        return Request(tuple(row["context_tokens"]), tuple(row["continuation_tokens"]), name)
    if tokenizer is None:
        raise ScoringError(f"{name}: strings need a tokenizer; give one (--tokenizer)")
    (pair,) = encode_pairs(tokenizer, [(row["context"], row["continuation"])])
    return Request(tuple(pair.context), tuple(pair.continuation), name)


def _tokenizer(name: str | None, checkpoint: Checkpoint) -> LoadedTokenizer:
    training = checkpoint.training
    revision = training.tokenizer_revision if training and not name else None
    if name is None and checkpoint.kind == "huggingface":
        name = str(checkpoint.path)
    name = name or checkpoint.tokenizer_name
    if name is None:
        raise ScoringError(
            f"{checkpoint.path} names no tokenizer, but the requests hold strings; give one "
            "(--tokenizer)"
        )
    tokenizer = load_tokenizer(name, use_fast=True, revision=revision)
    check_sentence(tokenizer)
    return tokenizer

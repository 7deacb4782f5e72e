"""Answers to many prompts, the same for each as alone, by rows that are refilled as they end.

A prompt is read once for all its samples, and a prefix that many prompts share once for all of
them. Logits are fp32, as the best two often tie in bf16. Only ids that the tokenizer knows are
chosen: a padded vocabulary has rows that were never trained.
"""

import logging
from collections.abc import Iterator, Sequence

import torch
from transformers import PreTrainedModel

from evaluation.errors import ScoringError
from evaluation.progress import count_answers, progress
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.forward import longest_position
from evaluation.scoring.engine.generation.decoding import DecodingBatch
from evaluation.scoring.engine.generation.prompts import Counts

log = logging.getLogger(__name__)


def generate(
    model: PreTrainedModel,
    requests: Sequence[GenerationRequest],
    stopping: Stopping,
    *,
    vocabulary: int,
    batch: int,
    device: str | torch.device,
    counts: Counts | None = None,
) -> Iterator[dict[AnswerKey, Answer]]:
    """Yield answers in parts as they are done, with `batch` rows decoded at once, the longest prompts first.

    Where a GPU's memory is not enough, those being decoded begin again, half as many at once.

    Args:
        vocabulary: ids from here on are never chosen.
        counts: is told what was done.

    Raises:
        NonFiniteError: where the model gives NaN or infinity, naming the prompt.
        ScoringError: where memory is not enough for a single row, or an answer may become too long.
    """
    _check(model, requests)
    device = torch.device(device)
    wanted = {AnswerKey(i, s) for i, request in enumerate(requests) for s in request.samples}
    with progress("answers", len(wanted), "answer") as bar:
        while wanted:
            decoding = DecodingBatch(
                model,
                requests,
                wanted,
                stopping,
                vocabulary=vocabulary,
                rows=min(batch, len(wanted)),
                device=device,
                counts=counts or Counts(),
            )
            for part in decoding.parts():
                wanted -= part.keys()
                count_answers(bar, [len(answer.tokens) for answer in part.values()])
                yield part
            del decoding  # it holds what there is not enough memory for
            if wanted:
                batch = _fewer(min(batch, len(wanted)))


def _check(model: PreTrainedModel, requests: Sequence[GenerationRequest]) -> None:
    longest = longest_position(model)
    for request in requests:
        if len(request.tokens) + request.max_new_tokens > longest:
            raise ScoringError(
                f"prompt {request.id}: with its answer it may have more than {longest:.0f} tokens, "
                "where this model's rotary embedding begins to depend on what it is batched with; "
                "lower max_new_tokens"
            )


def _fewer(batch: int) -> int:
    if batch == 1:
        raise ScoringError(
            "the GPU has not enough memory for a single answer; lower max_new_tokens, or give the "
            "job a GPU with more memory"
        )
    torch.cuda.empty_cache()
    log.warning("the GPU has not enough memory for %d answers at once; going on with half", batch)
    return batch // 2

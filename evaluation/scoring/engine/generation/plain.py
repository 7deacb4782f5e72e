"""Generate answers by the model class's own `generate`, one prompt at a time: slow, and right for any class.

The class keeps its own cache and computes its own logits; only the choice of each token and the rules
for ending an answer are this project's. So the answers are those of the fast way, for a class that
both can run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel
from transformers import StoppingCriteriaList as StoppingCriteria

from evaluation.progress import count_answers, progress
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest
from evaluation.scoring.engine.busy import working
from evaluation.scoring.engine.faults import gpu_faults
from evaluation.scoring.engine.generation.partial_answers import (
    PartialAnswer,
    next_tokens,
    rules_of,
)
from evaluation.scoring.engine.generation.sampling import stream_width


def generate_plainly(
    model: PreTrainedModel,
    requests: Sequence[GenerationRequest],
    *,
    vocabulary: int,
    device: str | torch.device,
) -> Iterator[dict[AnswerKey, Answer]]:
    """Yield the answers of one prompt after the other, like `generate`.

    Raises:
        NonFiniteError: When the model returns NaN or infinity; it names the prompt.
    """
    total = sum(len(request.samples) for request in requests)
    with progress("answers", total, "answer") as bar:
        for index, request in enumerate(requests):
            with gpu_faults():
                part = plain_answers(model, index, request, vocabulary, torch.device(device))
            count_answers(bar, [len(answer.tokens) for answer in part.values()])
            yield part


@working
@torch.inference_mode()
def plain_answers(
    model: PreTrainedModel,
    index: int,
    request: GenerationRequest,
    vocabulary: int,
    device: torch.device,
    seen: list[torch.Tensor] | None = None,
) -> dict[AnswerKey, Answer]:
    """Return all samples of a prompt; those that have ended are decoded on, to no effect.

    Args:
        seen: Gets the logits (V,) of each token of the first sample; None: they are not kept.
    """
    width = stream_width(vocabulary)
    rows = [PartialAnswer.of(index, request, sample, width) for sample in request.samples]
    ids = torch.tensor([request.tokens] * len(rows), device=device)

    def have_ended(*_: Any, **__: Any) -> torch.Tensor:
        return torch.tensor([row.stop_reason is not None for row in rows], device=device)

    before = model.generation_config
    model.generation_config = GenerationConfig(pad_token_id=0)  # none of the model's own settings
    try:
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=GenerationConfig(
                do_sample=False, max_new_tokens=request.max_new_tokens, pad_token_id=0
            ),
            logits_processor=LogitsProcessorList([_Chooser(rows, vocabulary, width, seen)]),
            stopping_criteria=StoppingCriteria([have_ended]),
        )
    finally:
        model.generation_config = before
    return {row.key: row.answer() for row in rows}


@dataclass
class _Chooser:
    """Chooses each row's next token, and leaves `generate` no other."""

    rows: list[PartialAnswer]
    vocabulary: int
    width: int
    seen: list[torch.Tensor] | None

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        logits = scores[:, : self.vocabulary].float()
        if self.seen is not None:
            self.seen.append(logits[0])
        chosen = torch.zeros(len(self.rows), dtype=torch.long, device=scores.device)
        going = [place for place, row in enumerate(self.rows) if row.stop_reason is None]
        rows = [self.rows[place] for place in going]
        tokens = next_tokens(rows, logits[going], rules_of(rows, logits.device), self.width)
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.take(token)
        chosen[going] = tokens
        only = torch.full_like(scores, -torch.inf)
        return only.scatter_(1, chosen[:, None], 0.0)

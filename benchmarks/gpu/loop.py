"""A plain loop over transformers, in the manner of lm-evaluation-harness.

Inputs of about one length together, the longest first, padded on the right; the logits of every
token of the batch, log-softmax over all of them, then each candidate's tokens are picked. Candidates
that differ in their last token alone share a row, as there. Kinder than the original in one thing: a
batch's results come back at once, not candidate by candidate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from evaluation.scoring.engine.window import Request, Score

BATCH = {"cpu": 16, "cuda": 64}
"""Rows of a batch; as `lm_eval --batch_size auto` would take at most on a GPU."""


@dataclass
class Loop:
    """A model asked in batches of `batch` rows, fewer once memory was not enough.

    `tokens` counts what the model read, padding included.
    """

    model: PreTrainedModel
    batch: int
    tokens: int = 0

    @torch.inference_mode()
    def score(self, requests: Sequence[Request]) -> list[Score]:
        """In their order."""
        rows: dict[tuple[int, ...], list[int]] = {}
        for number, one in enumerate(requests):
            rows.setdefault((*one.context, *one.continuation[:-1]), []).append(number)
        inputs = sorted(rows, key=lambda ids: (-len(ids), ids))
        found: dict[int, Score] = {}
        start = 0
        while start < len(inputs):
            chosen = inputs[start : start + self.batch]
            try:
                found |= self._batch(chosen, [rows[ids] for ids in chosen], requests)
                start += len(chosen)
                continue
            except torch.OutOfMemoryError:
                if self.batch == 1:
                    raise
            self.batch //= 2
            torch.cuda.empty_cache()  # outside, where the failed batch holds nothing any more
        return [found[number] for number in range(len(requests))]

    def _batch(
        self,
        inputs: Sequence[tuple[int, ...]],
        owners: Sequence[Sequence[int]],
        requests: Sequence[Request],
    ) -> dict[int, Score]:
        longest = len(inputs[0])
        ids = torch.zeros(len(inputs), longest, dtype=torch.long)
        for row, one in enumerate(inputs):
            ids[row, : len(one)] = torch.tensor(one)
        logits = self.model(input_ids=ids.to(self.model.device), use_cache=False).logits
        logprobs = logits.log_softmax(-1)  # (B, T, V), in the model's own type, as there
        del logits
        numbers, sums, greedy = [], [], []
        for row, (one, members) in enumerate(zip(inputs, owners, strict=True)):
            for number in members:
                target = torch.tensor(requests[number].continuation, device=logprobs.device)
                asked = logprobs[row, len(one) - len(target) : len(one)]  # (N, V)
                numbers.append(number)
                sums.append(asked.gather(1, target[:, None]).sum())
                greedy.append((asked.argmax(-1) == target).all())
        self.tokens += ids.numel()
        totals, likeliest = torch.stack(sums).tolist(), torch.stack(greedy).tolist()
        return {
            number: Score(nats, best)
            for number, nats, best in zip(numbers, totals, likeliest, strict=True)
        }

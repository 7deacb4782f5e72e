"""A plain loop over transformers, in the manner of lm-evaluation-harness.

Inputs of about one length together, the longest first, padded on the right; the logits of every
token of the batch, log-softmax over all of them, then each candidate's tokens are picked. Candidates
that differ in their last token alone share a row, as there. Kinder than the original in one thing: a
batch's results come back at once, not candidate by candidate.
"""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from evaluation.scoring.engine.window import Request

BATCH = {"cpu": 16, "cuda": 64}
"""Rows of a batch; as `lm_eval --batch_size auto` would take at most on a GPU."""


@torch.inference_mode()
def loop(model: PreTrainedModel, requests: Sequence[Request], batch: int) -> list[float]:
    """Return log-probabilities in the order of the requests."""
    rows: dict[tuple[int, ...], list[int]] = {}
    for number, one in enumerate(requests):
        rows.setdefault((*one.context, *one.continuation[:-1]), []).append(number)
    inputs = sorted(rows, key=len, reverse=True)
    found = [0.0] * len(requests)
    for start in range(0, len(inputs), batch):
        chosen = inputs[start : start + batch]
        ids = torch.zeros(len(chosen), len(chosen[0]), dtype=torch.long)
        for row, one in enumerate(chosen):
            ids[row, : len(one)] = torch.tensor(one)
        logits = model(input_ids=ids.to(model.device), use_cache=False).logits
        logprobs = logits.log_softmax(-1)  # (B, T, V), in the model's own type, as there
        del logits
        numbers = [number for one in chosen for number in rows[one]]
        sums = []
        for row, one in enumerate(chosen):
            for number in rows[one]:
                target = torch.tensor(requests[number].continuation, device=model.device)
                asked = logprobs[row, len(one) - len(target) : len(one)]  # (N, V)
                sums.append(asked.gather(1, target[:, None]).sum())
        for number, nats in zip(numbers, torch.stack(sums).tolist(), strict=True):
            found[number] = nats
    return found

"""Make requests and text of random ids in the shapes of HellaSwag, MMLU and Tier2; score by a plain loop."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from evaluation.scoring.window import Request

CHOICES = 4
SUBJECTS = 57
STEM = 650
"""Tokens of five solved questions of MMLU, which all questions of a subject share."""

Task = list[Request]
"""CHOICES requests for each question, which share their context."""


def new_tasks(vocabulary: int, questions: int, seed: int) -> dict[str, Task]:
    """Return tasks like HellaSwag, and MMLU without and with five shots, each of at most `questions`."""
    random = np.random.default_rng(seed)
    endings, letters = min(questions, 10_042), min(questions, 14_042)

    def ids(low: int, high: int) -> tuple[int, ...]:
        return tuple(random.integers(1, vocabulary, random.integers(low, high + 1)).tolist())

    def task(contexts: list[tuple[int, ...]], low: int, high: int) -> Task:
        return [Request(context, ids(low, high)) for context in contexts for _ in range(CHOICES)]

    stems = [ids(STEM, STEM) for _ in range(SUBJECTS)]
    alone = [ids(30, 120) for _ in range(letters)]
    shots = [(*stems[place * SUBJECTS // letters], *one) for place, one in enumerate(alone)]
    return {
        "hellaswag": task([ids(20, 90) for _ in range(endings)], 8, 40),
        "mmlu_0shot": task(alone, 1, 1),
        "mmlu_5shot": task(shots, 1, 1),
    }


def sample(task: Task, questions: int) -> Task:
    """Return a number of a task's questions, evenly spread."""
    count = len(task) // CHOICES
    places: NDArray[np.int64] = np.linspace(0, count - 1, min(questions, count)).astype(int)
    return [one for place in places for one in task[place * CHOICES :][:CHOICES]]


def new_text(
    vocabulary: int, blocks: int, length: int, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return blocks (blocks, length), and the flat positions where documents of about 500 tokens begin."""
    random = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, vocabulary, (blocks, length), generator=random)
    begins = torch.rand(blocks * length, generator=random) < 1 / 500
    begins[0] = True
    return tokens, begins.nonzero()[:, 0]


BATCH = {"cpu": 16, "cuda": 64}
"""Rows of a batch; on a GPU the most that `lm_eval --batch_size auto` takes."""


@torch.inference_mode()
def loop(model: PreTrainedModel, requests: Sequence[Request], batch: int) -> list[float]:
    """Return log-probabilities in the order of the requests, by a plain loop over transformers.

    Like lm-evaluation-harness, it batches inputs of similar length, the longest first, padded on the
    right, computes log-softmax for every token, and then picks each candidate's tokens. Candidates that
    differ only in their last token share a row. Unlike the harness, it copies a batch's results at once.
    """
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
        logprobs = logits.log_softmax(-1)  # (B, T, V), in the model's own dtype, as in the harness
        del logits
        numbers = [number for one in chosen for number in rows[one]]
        sums = []
        for row, one in enumerate(chosen):
            for number in rows[one]:
                target = torch.tensor(requests[number].continuation, device=model.device)
                last = logprobs[row, len(one) - len(target) : len(one)]  # (N, V)
                sums.append(last.gather(1, target[:, None]).sum())
        for number, nats in zip(numbers, torch.stack(sums).tolist(), strict=True):
            found[number] = nats
    return found

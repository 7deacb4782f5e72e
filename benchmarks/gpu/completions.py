"""Generate greedy completions of random prompts, by the engine and by a plain loop over transformers."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from evaluation.scoring.answers import GenerationRequest
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import generate

ROWS = 64
"""Completions that are decoded at once."""

Prompt = tuple[int, ...]


def new_prompts(vocabulary: int, count: int, seed: int) -> list[Prompt]:
    """Return prompts of 40 to 300 tokens."""
    random = np.random.default_rng(seed)
    lengths = random.integers(40, 301, count)
    return [tuple(random.integers(1, vocabulary, length).tolist()) for length in lengths]


def engine(model: PreTrainedModel, prompts: Sequence[Prompt], longest: int) -> list[list[int]]:
    """Return completions of `longest` tokens each."""
    requests = {
        place: GenerationRequest(str(place), prompt, longest)
        for place, prompt in enumerate(prompts)
    }
    scored = Engine(model, row_tokens=4096, device=model.device.type)
    found = generate(scored, requests, vocabulary=model.config.vocab_size, batch=ROWS)
    answers = {key: answer for part in found for key, answer in part.items()}
    return [list(answers[place].tokens) for place in range(len(prompts))]


@torch.inference_mode()
def loop(model: PreTrainedModel, prompts: Sequence[Prompt], longest: int) -> list[list[int]]:
    """Return the same by `model.generate`, for prompts of similar length, padded on the left."""
    order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
    found: dict[int, list[int]] = {}
    for start in range(0, len(order), ROWS):
        chosen = order[start : start + ROWS]
        length = len(prompts[chosen[0]])
        ids = torch.zeros(len(chosen), length, dtype=torch.long)
        for row, place in enumerate(chosen):
            ids[row, length - len(prompts[place]) :] = torch.tensor(prompts[place])
        completed = model.generate(
            input_ids=ids.to(model.device),
            attention_mask=(ids > 0).long().to(model.device),
            do_sample=False,
            min_new_tokens=longest,
            max_new_tokens=longest,
            pad_token_id=0,
        )[:, length:]
        found |= dict(zip(chosen, completed.tolist(), strict=True))
    return [found[place] for place in range(len(prompts))]

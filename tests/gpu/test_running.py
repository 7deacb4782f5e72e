"""A process that scores: answers, loading, many checkpoints one after the other, no waiting."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from evaluation.scoring.answers import GenerationRequest, Stopping
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import generate
from evaluation.scoring.engine.rows import score_blocks, score_requests
from tests.gpu.models import HINTS, VOCABULARY, engine_of, ids, in_float64, new_model, questions

pytestmark = [pytest.mark.gpu, *map(pytest.mark.filterwarnings, HINTS)]


@pytest.mark.parametrize("name", ["llama", "qwen2-sliding"])
def test_answers_are_the_likeliest_tokens(
    name: str, device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    """Each token's logit in float64 is the highest after all before it, or as good as that."""
    model = new_model(name, dtype, device)
    wide = in_float64(model)
    shared = ids(random, 140)
    prompts = [[*shared, *ids(random, n)] for n in (1, 5, 20)] + [ids(random, 3)]
    stopping = Stopping(frozenset(), (), lambda _, tokens: " ".join(map(str, tokens)))
    requests = {
        i: GenerationRequest(str(i), tuple(p), 24, stopping=stopping) for i, p in enumerate(prompts)
    }
    scored = Engine(model, row_tokens=512, device=device)
    parts = generate(scored, requests, vocabulary=VOCABULARY, batch=3)
    answers = {key: answer for part in parts for key, answer in part.items()}
    # Logits have a spread of 1, and bfloat16 keeps two digits of what makes them.
    noise = 1e-3 if dtype == torch.float32 else 0.15
    for place, prompt in enumerate(prompts):
        said = answers[place].tokens
        assert len(said) == 24
        with torch.inference_mode():
            logits = wide(input_ids=torch.tensor([[*prompt, *said]])).logits[0]
        after = logits[len(prompt) - 1 : -1]
        chosen = after.gather(1, torch.tensor(said)[:, None])[:, 0]
        assert float((after.max(-1).values - chosen).max()) < noise
        assert float(after.max(-1).values.mean() - after.median(-1).values.mean()) > 1


@contextlib.contextmanager
def without_waiting() -> Iterator[None]:
    """Whatever waits for the GPU unasked raises."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_nothing_waits_for_the_gpu_unasked(
    device: str, dtype: torch.dtype, random: np.random.Generator
) -> None:
    """Once all is compiled; and what is scored then is the same to the last bit."""
    engine = engine_of(new_model("llama", dtype, device))
    asked = questions(random)
    tokens = torch.tensor([ids(random, 200) for _ in range(3)])
    starts = torch.tensor([0, 150, 200, 400])
    first = score_requests(engine, asked)
    first_nats = [score_blocks(engine, tokens, at)[0] for at in (None, starts)]
    with without_waiting():
        again = score_requests(engine, asked)
        again_nats = [score_blocks(engine, tokens, at)[0] for at in (None, starts)]
        with pytest.raises(RuntimeError, match="synchroniz"):  # it is seen if it waits
            tokens.to(device).sum().item()
    assert again == first
    assert all((one == other).all() for one, other in zip(first_nats, again_nats, strict=True))

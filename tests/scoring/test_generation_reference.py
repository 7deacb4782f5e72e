"""A real model's answers against transformers' own, in fp32; EVAL_GENERATION_PROMPTS=100 for all."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from evaluation.scoring.answers import GenerationRequest, Stopping
from tests.scoring import tiny

PROMPTS = int(os.environ.get("EVAL_GENERATION_PROMPTS", "4"))
LONGEST = 48 if PROMPTS > 4 else 24


@pytest.fixture(scope="module")
def tokenizer(smollm2: Path) -> Tokenizer:
    return AutoTokenizer.from_pretrained(smollm2)


@pytest.fixture(scope="module")
def model(smollm2: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def prompts(shared: Path, tokenizer: Tokenizer) -> list[tuple[int, ...]]:
    """Half of them instructions as a chat, half questions after two solved ones."""
    data = shared / "data/generative"
    asked = pq.read_table(data / "IFEval/default/train-00000-of-00001.parquet").to_pylist()
    rows = pq.read_table(data / "gsm8k/main/test-00000-of-00001.parquet").to_pylist()
    shots = "".join(f"Question: {r['question']}\nAnswer: {r['answer']}\n\n" for r in rows[-2:])
    chats = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": row["prompt"]}], tokenize=False, add_generation_prompt=True
        )
        for row in asked[: PROMPTS // 2]
    ]
    questions = [f"{shots}Question: {row['question']}\nAnswer:" for row in rows[: PROMPTS // 2]]
    return [tuple(tokenizer(text)["input_ids"]) for text in chats + questions]


def test_greedy_answers_are_those_of_transformers(model, tokenizer, prompts) -> None:
    """Each prompt alone there, many at once here."""
    eos = tokenizer.eos_token_id
    stopping = Stopping(frozenset({eos}), (), lambda _, ids: tokenizer.decode(ids))
    given = [GenerationRequest(str(i), tokens, LONGEST) for i, tokens in enumerate(prompts)]
    answers = tiny.answers(model, given, stopping, batch=48, vocabulary=len(tokenizer))
    for index, tokens in enumerate(prompts):
        with torch.inference_mode():
            ids = model.generate(
                torch.tensor([tokens]),
                attention_mask=torch.ones(1, len(tokens), dtype=torch.long),
                do_sample=False,
                max_new_tokens=LONGEST,
                eos_token_id=eos,
                pad_token_id=eos,
            )[0, len(tokens) :].tolist()
        expected = ids[: ids.index(eos)] if eos in ids else ids
        assert list(answers[index].tokens) == expected, f"prompt {index}"

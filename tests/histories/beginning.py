"""The world that every history begins with: two stages, three more steps on disk, tiny models."""

import contextlib
import io
import logging
import random
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from evaluation.checkpoints.write import import_hf
from tests.histories.model import HERE, Copy, Model
from tests.workflow.world import (
    ANSWERED,
    FIRST_LETTER,
    LAST_LETTER,
    WORDS,
    build_tokenizer,
    sentence,
    write_rows,
)

SEEDS = 6
LENGTH = 32


def build_pool(folder: Path) -> Path:
    """Checkpoints `0` … `5` of different weights, and beside them the tokenizer and the data."""
    dice = random.Random(0)
    texts = [" ".join(sentence(dice) for _ in range(8)) for _ in range(20)]
    tokenizer = build_tokenizer(texts, folder / "tokenizer")
    write_rows(folder / "data/text/train.jsonl", [{"text": text} for text in texts])
    for name in ("quiz", "riddles"):
        rows = [
            {"question": sentence(dice), "answers": dice.sample(WORDS, 3), "label": index % 3}
            for index in range(16)
        ]
        write_rows(folder / "data" / name / "test.jsonl", rows)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
    )  # fmt: skip
    logging.getLogger("transformers").setLevel(logging.ERROR)
    with contextlib.redirect_stderr(io.StringIO()):
        for seed in range(SEEDS):
            torch.manual_seed(seed)
            source = folder / "hf" / str(seed)
            LlamaForCausalLM(config).save_pretrained(source)
            name = str(folder / "tokenizer")
            import_hf(
                source, folder / "pool", tp=1 + seed % 2, step=seed, sequence_length=LENGTH,
                tokenizer_name=name,
            )  # fmt: skip
    return folder / "pool"


def beginning(pool: Path) -> Model:
    """`stage1` with listed steps and `stage2` with all it finds, its probes and a bridge."""
    folder = pool.parent
    aims = [{"tier": "tier2", "want": "keep", "margin": 0.5}]
    aims += [{"tier": "tier3", "want": "keep", "margin": 0.5}]
    config = {
        "results": f"{HERE}/results",
        "cache": f"{HERE}/cache",
        "suites": f"{HERE}/suites",
        "mirrors": {f"made/{name}": str(folder / "data" / name) for name in DATA},
        "tokenizer": {"name": str(folder / "tokenizer")},
        "sequence_length": LENGTH,
        "scoring": {"dtype": "float32"},
        "verification": {"workers": 1},
        "stages": {
            "stage1": {
                "checkpoints": f"{HERE}/ckpts/one",
                "steps": [10, 20],
                "suites": ["base"],
            },
            "stage2": {
                "checkpoints": f"{HERE}/ckpts/two",
                "steps": "all",
                "suites": ["base", "sft"],
                "bridge": {"stage": "stage1", "step": 20},
                "objective": aims,
            },
        },
    }
    places = ["one/10", "one/20", "one/30", "two/5", "two/15", "side/7"]
    copies = {place: Copy(seed) for seed, place in enumerate(places)}
    return Model(config, suites(), copies)


DATA = ("text", "quiz", "riddles")


def task(name: str) -> dict[str, Any]:
    return {
        "dataset": f"made/{name}",
        "split": "test",
        "choices": "answers",
        "gold": "label",
        "context": "Question: {{ question }}\nAnswer:",
    }


def probe(content: str) -> dict[str, Any]:
    return {
        "category": "concise",
        "messages": [{"role": "user", "content": content}],
        "checks": [{"check": "no_chat_artifacts"}],
        "max_new_tokens": 6,
    }


SAMPLED = {"temperature": 1.0, "n": 2, "seed": 1}


def answers(sampling: dict[str, Any] | None) -> dict[str, Any]:
    """A task whose completions are verified; greedy without `sampling`."""
    task = {
        **ANSWERED,
        "prompt": "{{ answers[0] }}, {{ answers[1] }}:",
        "max_new_tokens": 6,
        "limit": 6,
        "verifiers": {"strict": FIRST_LETTER, "lenient": LAST_LETTER},
    }
    return {**task, "sampling": sampling} if sampling else task


def suites() -> dict[str, Any]:
    """`base`, `sft`, and `more`, which no stage names yet."""
    return {
        "base": {
            "slices": {"text": {"dataset": "made/text", "tokens": 640}},
            "tasks": {"quiz": task("quiz")},
        },
        "sft": {
            "probes": {"colour": probe("A colour?"), "tree": probe("A tree?")},
            "generation_tasks": {"sums": answers(SAMPLED), "words": answers(None)},
        },
        "more": {
            "slices": {"late": {"dataset": "made/text", "tokens": 320, "skip_documents": 9}},
            "tasks": {"riddles": task("riddles")},
        },
    }

"""The world that every history begins with: two stages, three more steps on disk, tiny models."""

import contextlib
import io
import logging
import random
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from evaluation.checkpoints.import_hf import import_hf
from tests.histories.model import HERE, Copy, File, Model
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
    _write_halves(folder / "data/text", "train", [{"text": text} for text in texts])
    for name in ("quiz", "riddles"):
        rows = [
            {"question": sentence(dice), "answers": dice.sample(WORDS, 3), "label": index % 3}
            for index in range(16)
        ]
        _write_halves(folder / "data" / name, "test", rows)
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


def _write_halves(folder: Path, split: str, rows: list[dict[str, Any]]) -> None:
    """Data in two files, as a mirror of the hub has them."""
    middle = len(rows) // 2
    for number, part in enumerate((rows[:middle], rows[middle:])):
        write_rows(folder / f"{split}-{number:05}-of-00002.jsonl", part)


def files(folder: Path) -> dict[str, File]:
    """The data, twice more elsewhere under equal names, and the tokenizer."""
    found: dict[str, File] = {}
    for path in sorted((folder / "data").rglob("*.jsonl")):
        name = path.relative_to(folder / "data")
        found[f"data/{name}"] = File()
        found[f"data_b/{name}"] = File(2)
        found[f"data_c/{name}"] = File(0, 1)
    names = sorted(path.name for path in (folder / "tokenizer").iterdir())
    return {**found, **{f"tokenizer/{name}": File() for name in names}}


def beginning(pool: Path) -> Model:
    """`stage1` with listed steps and `stage2` with all it finds, its probes and a bridge."""
    folder = pool.parent
    objectives = [{"tier": "tier2", "want": "keep", "margin": 0.5}]
    objectives += [{"tier": "tier3", "want": "keep", "margin": 0.5}]
    config = {
        "results": f"{HERE}/results",
        "cache": f"{HERE}/cache",
        "suites": f"{HERE}/suites",
        "mirrors": {f"made/{name}": f"{HERE}/data/{name}" for name in DATA},
        "tokenizer": {"name": f"{HERE}/tokenizer", "also_known_as": [str(folder / "tokenizer")]},
        "sequence_length": LENGTH,
        "scoring": {"dtype": "float32"},
        "verification": {"workers": 1, "seconds": 20.0, "memory_mb": 2048, "max_error_share": 1.0},
        "stages": {
            "stage1": {"checkpoints": f"{HERE}/ckpts/one", "steps": [10, 20], "suites": ["base"]},
            "stage2": {
                "checkpoints": f"{HERE}/ckpts/two",
                "steps": "all",
                "suites": ["base", "sft"],
                "bridge": {"stage": "stage1", "step": 20},
                "objective": objectives,
            },
        },
    }
    places = ["one/10", "one/20", "one/30", "two/5", "two/15", "side/7"]
    copies = {place: Copy(seed) for seed, place in enumerate(places)}
    copies |= {f"again/{10 * number}": Copy(6 - number) for number in (1, 2, 3)}
    return Model(config, suites(), copies, files(folder), clock=1)


DATA = ("text", "quiz", "riddles")


LETS: tuple[dict[str, str], ...] = (
    {"label": "(label + question | length) % 3", "question": "question ~ ' now'"},
    {"question": "question[4:]", "answers": "answers[::-1]"},
)
"""What a task computes first; in another order another label, or the same of all."""


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


CHECKS = [{"check": "no_chat_artifacts"}, {"check": "word_count", "at_most": 4}]
STRATA = {"label": "{{ label }}", "first": "{{ answers[0][0] }}"}
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
    """`base`, `sft`, and `more` and `child`, which no stage names yet."""
    return {
        "base": {
            "slices": {"text": {"dataset": "made/text", "tokens": 640}},
            "tasks": {"quiz": {**task("quiz"), "let": LETS[0]}},
        },
        "child": {"extends": "base", "overrides": {"tasks": {"quiz": {"group": "easy"}}}},
        "sft": {
            "probes": {
                "colour": probe("A colour?"),
                "tree": {**probe("A tree?"), "checks": CHECKS},
            },
            "generation_tasks": {
                "sums": {**answers(SAMPLED), "strata": STRATA},
                "words": answers(None),
            },
        },
        "more": {
            "slices": {"late": {"dataset": "made/text", "tokens": 320, "skip_documents": 9}},
            "tasks": {"riddles": task("riddles")},
        },
    }

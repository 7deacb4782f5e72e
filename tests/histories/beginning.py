"""The world that every history begins with: two stages, three more steps on disk, tiny models."""

import contextlib
import io
import json
import logging
import random
from pathlib import Path
from typing import Any

import torch
import yaml
from transformers import LlamaConfig, LlamaForCausalLM

from demo.nanotron_writer import import_hf
from tests.histories.model import Copy, File, Model
from tests.workflow.world import WORDS, build_tokenizer, sentence, write_rows

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
        found[f"data_b/{name}"] = File(2, 1)
        found[f"data_c/{name}"] = File(0, 1)
    names = sorted(path.name for path in (folder / "tokenizer").iterdir())
    return {**found, **{f"tokenizer/{name}": File() for name in names}}


def content() -> dict[str, Any]:
    """The configuration and suites, and what may be added; alike parts are copies of one another."""
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return json.loads(json.dumps(found))


def beginning(pool: Path) -> Model:
    """Two stages, three more steps on disk, and checkpoints that no stage names yet."""
    folder, found = pool.parent, content()
    found["config"]["tokenizer"]["also_known_as"] = [str(folder / "tokenizer")]
    places = ["one/10", "one/20", "one/30", "two/5", "two/15", "side/7"]
    copies = {place: Copy(seed) for seed, place in enumerate(places)}
    copies |= {f"again/{10 * number}": Copy(6 - number) for number in (1, 2, 3)}
    return Model(found["config"], found["suites"], copies, files(folder), clock=1)

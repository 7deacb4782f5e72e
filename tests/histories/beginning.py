"""The world that every history begins with: two stages, three more steps on disk, tiny models."""

import contextlib
import io
import json
import logging
import random
from pathlib import Path
from typing import Any

import yaml

from tests.histories.warm import ROOT
from tests.histories.world import OLD, World
from tests.workflow.world import WORDS, build_checkpoints, build_tokenizer, sentence, write_rows

SEEDS = 6
LENGTH = 32

CONTENT = json.dumps(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text()))
"""The configuration and suites, and what may be added; alike parts are copies of one another."""
NEW: dict[str, Any] = json.loads(CONTENT)["new"]
"""Items that may be added to suites."""


def build_pool(folder: Path) -> Path:
    """Checkpoints `0` … `5` of different weights, and beside them the tokenizer and the data."""
    dice = random.Random(0)
    texts = [" ".join(sentence(dice) for _ in range(8)) for _ in range(20)]
    build_tokenizer(texts, folder / "tokenizer")
    _write_halves(folder / "data/text", "train", [{"text": text} for text in texts])
    for name in ("quiz", "riddles"):
        rows = [
            {"question": sentence(dice), "answers": dice.sample(WORDS, 3), "label": index % 3}
            for index in range(16)
        ]
        _write_halves(folder / "data" / name, "test", rows)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    with contextlib.redirect_stderr(io.StringIO()):
        places = [("pool", seed) for seed in range(SEEDS)]
        build_checkpoints(folder, places, positions=LENGTH, width=16)
    return folder / "pool"


def _write_halves(folder: Path, split: str, rows: list[dict[str, Any]]) -> None:
    """Data in two files, as a mirror of the hub has them."""
    middle = len(rows) // 2
    for number, part in enumerate((rows[:middle], rows[middle:])):
        write_rows(folder / f"{split}-{number:05}-of-00002.jsonl", part)


def beginning(folder: Path, pool: Path) -> World:
    """Two stages, three more steps on disk, and checkpoints that no stage names yet, in a new folder.

    The data are there twice more under equal names: in `data_b` other rows, in `data_c` equal bytes.
    """
    found = json.loads(CONTENT)
    found["config"]["tokenizer"]["also_known_as"] = [str(pool.parent / "tokenizer")]
    world = World(folder, pool, {key: found[key] for key in ("config", "suites")})
    world.write()
    for number, place in enumerate("one/10 one/20 one/30 two/5 two/15 side/7".split()):
        world.copy_in(place, number, OLD + number)
    for number in (1, 2, 3):
        world.copy_in(f"again/{10 * number}", 6 - number, OLD + 6 - number)
    for path in sorted((pool.parent / "data").rglob("*.jsonl")):
        name = path.relative_to(pool.parent / "data")
        for top, variant in (("data", 0), ("data_b", 2), ("data_c", 0)):
            seconds = OLD if top == "data" else OLD + 1
            world.vary(f"{top}/{name}", variant, seconds, in_place=True)
    for path in (pool.parent / "tokenizer").iterdir():
        world.vary(f"tokenizer/{path.name}", 0, OLD, in_place=True)
    return world


def snakemake(world: World, *arguments: str) -> list[str]:
    """`snakemake …` as a user runs it."""
    options = "--cores 2 --keep-going --rerun-incomplete --latency-wait 0".split()
    command = ["-m", "snakemake", *arguments, "-s", str(ROOT / "workflow/Snakefile"), *options]
    return [*command, "--configfile", str(world.folder / "config.yaml")]

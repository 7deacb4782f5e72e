"""What may happen to data behind `mirrors`, and to the tokenizer's files."""

import os
import time

from tests.histories.world import HERE, World, put, require


def data_corrected(world: World, file: str, variant: int, how: str) -> None:
    """Data are current by name, size and time, so an edit that keeps all three is not noticed."""
    require(world.variants[file] != variant)
    world.vary(file, variant, time.time(), in_place=how == "in place")


def data_touched(world: World, dataset: str) -> None:
    for path in world.behind(dataset):
        os.utime(path)


def data_cloned(world: World, dataset: str) -> None:
    """Other files of other times with equal bytes."""
    for path in world.behind(dataset):
        put(path, path.read_bytes(), time.time(), in_place=False)


def mirror_led_elsewhere(world: World, dataset: str, mirror: str) -> None:
    """Files of equal names and sizes: in `data_b` other rows, in `data_c` equal bytes."""
    require(f"/{mirror}/" not in world.config["mirrors"][dataset])
    world.config["mirrors"][dataset] = f"{HERE}/{mirror}/{dataset.rpartition('/')[2]}"


def tokenizer_changed(world: World, tokenizer_file: str, how: str) -> None:
    """Two letters change their ids; or the template of chats is another."""
    variant = 1 - world.variants[tokenizer_file]
    world.vary(tokenizer_file, variant, time.time(), in_place=how == "in place")


def tokenizer_touched(world: World) -> None:
    for path in (world.folder / "tokenizer").iterdir():
        os.utime(path)

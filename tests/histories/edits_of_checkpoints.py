"""What a user, or a trainer, may do to checkpoints and to the files in them."""

import json
import os
import shutil
import time

from tests.histories.beginning import SEEDS
from tests.histories.world import HERE, OLD, World, configurations, put, require, weights

LINK = "now"


def checkpoint_replaced(world: World, place: str, seed: int, keeps_time: bool) -> None:
    require(world.seeds.get(place) != seed)
    world.forget(place)
    world.copy_in(place, seed, OLD + seed if keeps_time else time.time())


def checkpoint_added(world: World, anywhere: str, seed: int, keeps_time: bool) -> None:
    require(not world.checkpoint(anywhere).exists())
    world.seeds.pop(anywhere, None)
    checkpoint_replaced(world, anywhere, seed, keeps_time)


def checkpoint_touched(world: World, place: str) -> None:
    """Copied again by `cp -r`: the same weights at another time, in other files."""
    require(place not in world.broken)
    target = world.checkpoint(place)
    target.rename(old := target.with_name(f"{target.name}.old"))
    shutil.copytree(old, target, copy_function=shutil.copyfile)
    shutil.rmtree(old)


def _others(world: World, place: str) -> None:
    """Requires that each stage which finds its steps there would still find one without this."""
    for stage in world.stages:
        left = {step for step in world.steps(stage) if world.place(stage, step) != place}
        require(left or not world.steps(stage))


def checkpoint_deleted(world: World, place: str) -> None:
    _others(world, place)
    world.take_away(place, world.checkpoint(place))


def checkpoint_damaged(world: World, place: str, damage: str) -> None:
    """Half-written or damaged in some way, at another time; or one file is gone, and all else as it was."""
    _others(world, place)
    target = world.checkpoint(place)
    if damage == "lost_shard":
        require(place not in world.broken)
        world.take_away(place, weights(target)[-1])
        return
    world.forget(place)
    world.copy_in(place, world.seeds[place], time.time())
    path = (weights if damage == "truncated" else configurations)(target)[0]
    os.truncate(path, path.stat().st_size - 40)
    world.faults.add(place)


def checkpoint_restored(world: World, place: str) -> None:
    """From a copy that kept its times."""
    require(place in world.broken)
    world.forget(place)
    world.copy_in(place, world.seeds[place], OLD + world.seeds[place])


def weights_rewritten(world: World, place: str, keeps_time: bool, in_place: bool) -> None:
    """The last weight file gets other numbers, of the same size."""
    require(place not in world.broken)
    world.seeds[place] = (world.seeds[place] + 2) % SEEDS
    path = weights(world.checkpoint(place))[-1]
    content = weights(world.source(place, world.seeds[place]))[-1].read_bytes()
    require(len(content) == path.stat().st_size)
    seconds = path.stat().st_mtime if keeps_time else time.time()
    put(path, content, seconds, in_place=in_place)


EPSILONS = (("1e-06", "1e-05"), ("1.0e-06", "1.0e-05"))
"""A number that every checkpoint's configuration has, and another, as JSON and YAML write them."""


def settings_rewritten(world: World, place: str) -> None:
    """Another number in the model's configuration, in place and of the same size."""
    require(place not in world.broken)
    for path in configurations(world.checkpoint(place)):
        text = path.read_text()
        for one, other in EPSILONS:
            old, new = (one, other) if f": {one}" in text else (other, one)
            text = text.replace(f": {old}", f": {new}")
        put(path, text.encode(), time.time(), in_place=True)


def checkpoint_tokens(world: World, place: str, tokens: int) -> None:
    """The trainer's count of tokens is corrected in the checkpoint's metadata."""
    path = world.checkpoint(place) / "checkpoint_metadata.json"
    require(path.exists())
    content = json.loads(path.read_text())
    content["metas"]["consumed_tokens_total"] = tokens
    path.write_text(json.dumps(content, indent=2))


def checkpoints_behind_link(world: World, stage: str) -> None:
    """The same folder, named by a link to it."""
    link = world.checkpoint(LINK)
    require(not link.is_symlink())
    link.symlink_to(world.place(stage, 0).partition("/")[0])
    world.stages[stage]["checkpoints"] = f"{HERE}/ckpts/{LINK}"


def link_led_elsewhere(world: World, link: str, folder: str) -> None:
    path = world.checkpoint(link)
    require(path.is_symlink() and os.readlink(path) != folder and weights(path.parent / folder))
    path.unlink()
    path.symlink_to(folder)

"""What a user, or a trainer, may do to checkpoints and to the files in them."""

import json
import os
import shutil
import time

from tests.histories.beginning import SEEDS
from tests.histories.edits import require
from tests.histories.world import HERE, OLD, World, configurations, put, weights

LINK = "now"


def checkpoint_replaced(world: World, place: str, seed: int, keeps_time: bool) -> None:
    require(world.seeds.get(place) != (seed, "nanotron"))
    world.forget(place)
    world.copy_in(place, seed, "nanotron", OLD + seed if keeps_time else time.time())


def checkpoint_added(world: World, anywhere: str, seed: int, keeps_time: bool) -> None:
    require(not world.checkpoint(anywhere).exists())
    world.seeds.pop(anywhere, None)
    checkpoint_replaced(world, anywhere, seed, keeps_time)


def checkpoint_touched(world: World, place: str) -> None:
    """Copied again by `cp -r`: the same weights at another time, in other files."""
    require(place not in world.faults)
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
        require(place not in world.faults)
        world.take_away(place, weights(target)[-1])
        return
    if damage == "no_config":  # what is left is no checkpoint
        world.take_away(place, target)
    else:
        world.forget(place)
    world.copy_in(place, *world.seeds[place], time.time())
    settings, files = configurations(target), weights(target)
    if damage == "truncated":
        os.truncate(files[0], files[0].stat().st_size - 40)
    elif damage == "no_shard":
        files[-1].unlink()
    elif damage == "half_config":
        settings[0].write_bytes(settings[0].read_bytes()[:40])
    else:
        for path in settings:
            path.unlink()
    world.faults.add(place)


def checkpoint_restored(world: World, place: str) -> None:
    """From a copy that kept its times."""
    require(place in world.faults)
    world.forget(place)
    world.copy_in(place, *(known := world.seeds[place]), OLD + known[0])


def weights_rewritten(world: World, place: str, keeps_time: bool, in_place: bool) -> None:
    """The last weight file gets other numbers, of the same size."""
    require(place not in world.faults)
    seed, form = world.seeds[place]
    path = weights(world.checkpoint(place))[-1]
    source = (world.pool if form == "nanotron" else world.pool.parent / "hf") / str(
        (seed + 2) % SEEDS
    )
    content, seconds = weights(source)[-1].read_bytes(), path.stat().st_mtime
    require(len(content) == path.stat().st_size)
    world.seeds[place] = ((seed + 2) % SEEDS, form)
    put(path, content, seconds if keeps_time else time.time(), in_place=in_place)


def checkpoint_of_hugging_face(world: World, place: str, seed: int) -> None:
    """The folder of a public model in the place of a step."""
    _others_of_folder(world, place)
    world.forget(place)
    world.copy_in(place, seed, "hugging_face", time.time())


def _others_of_folder(world: World, *places: str) -> None:
    """Requires that each folder keeps a checkpoint that records its training, as prefill reads that."""
    for folder in {place.partition("/")[0] for place in places}:
        others = [p for p in world.places() if p.startswith(f"{folder}/") and p not in places]
        require(any(world.seeds[p][1] == "nanotron" and p not in world.faults for p in others))


def hugging_face_trained_further(world: World, place: str, another: str, seed: int) -> None:
    """Two steps are a public model and the same with some tensors changed, all with equal times."""
    require(place != another)
    _others_of_folder(world, place, another)
    seconds = time.time()
    for one in (place, another):
        world.forget(one)
        world.copy_in(one, seed, "hugging_face", seconds)
    weights_rewritten(world, another, True, in_place=False)


EPSILONS = (("1e-06", "1e-05"), ("1.0e-06", "1.0e-05"))
"""A number that every checkpoint's configuration has, and another, as JSON and YAML write them."""


def settings_rewritten(world: World, place: str) -> None:
    """Another number in the model's configuration, in place and of the same size."""
    require(place not in world.faults)
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
    found = json.loads(path.read_text())
    found["metas"]["consumed_tokens_total"] = tokens
    path.write_text(json.dumps(found, indent=2))


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


def checkpoints_moved(world: World, stage: str, old_folder: str, new_folder: str) -> None:
    """A folder gets another name, and its files keep their times; all that name it follow."""
    old, new = old_folder, new_folder
    require(world.place(stage, 0) == f"{old}/0" and new == f"{old}_moved")
    require(not world.gone and not world.checkpoint(LINK).is_symlink())
    world.checkpoint(old).rename(world.checkpoint(new))
    names = (*world.seeds, *world.faults)
    moved = {
        place: place.replace(f"{old}/", f"{new}/") for place in names if place.startswith(f"{old}/")
    }
    world.seeds = {moved.get(place, place): seed for place, seed in world.seeds.items()}
    world.faults = {moved.get(fault, fault) for fault in world.faults}
    text = json.dumps(world.content).replace(f"/ckpts/{old}/", f"/ckpts/{new}/")
    world.content = json.loads(text.replace(f'/ckpts/{old}"', f'/ckpts/{new}"'))

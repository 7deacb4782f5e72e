"""What a user, or a trainer, may do to checkpoints and to the files in them."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations, product
from typing import Any

from tests.histories.beginning import SEEDS
from tests.histories.model import DAMAGES, HERE, Copy, Model
from tests.histories.registry import edit


@edit(
    lambda model: [
        (place, seed, keeps_times)
        for place, known in model.checkpoints.items()
        for seed, keeps_times in product(range(SEEDS), (True, False))
        if seed != known.seed
    ]
)
def checkpoint_replaced(model: Model, place: str, seed: int, keeps_times: bool) -> None:
    model.gone.pop(place, None)
    model.checkpoints[place] = Copy(seed, 0 if keeps_times else model.now())


@edit(lambda model: [(p,) for p, known in model.checkpoints.items() if known.damage is None])
def checkpoint_touched(model: Model, place: str) -> None:
    """Copied again by `cp -r`: the same weights at another time."""
    model.checkpoints[place] = replace(model.checkpoints[place], written=model.now())


@edit(
    lambda model: [
        (place, seed, keeps_times)
        for place in ("one/40", "two/25", "two/20", "side/14", *model.gone)
        if place not in model.checkpoints
        for seed, keeps_times in product((0, 5), (True, False))
    ]
)
def checkpoint_added(model: Model, place: str, seed: int, keeps_times: bool) -> None:
    checkpoint_replaced(model, place, seed, keeps_times)


@edit(lambda model: [(place,) for place in model.checkpoints if _others(model, place)])
def checkpoint_deleted(model: Model, place: str) -> None:
    model.gone[place] = model.checkpoints.pop(place)


@edit(
    lambda model: [
        (place, damage)
        for place, known in model.checkpoints.items()
        for damage in DAMAGES
        if known.damage != damage
        and _others(model, place)
        and (damage != "lost_shard" or known == known.as_copied)
    ]
)
def checkpoint_damaged(model: Model, place: str, damage: str) -> None:
    known = model.checkpoints[place]
    written = known.written if damage == "lost_shard" else model.now()
    if damage == "no_config":  # what is left is no checkpoint
        model.gone.setdefault(place, known)
    else:
        model.gone.pop(place, None)
    model.checkpoints[place] = Copy(
        known.seed, written, damage, known.form, training=known.training
    )


@edit(lambda model: [(p,) for p, known in model.checkpoints.items() if known.damage])
def checkpoint_restored(model: Model, place: str) -> None:
    """From a copy that kept its times."""
    known = model.checkpoints[place]
    model.gone.pop(place, None)
    model.checkpoints[place] = Copy(known.seed, form=known.form, training=known.training)


def _others(model: Model, place: str) -> bool:
    """Whether every stage that finds its steps there would still find one without this."""
    less = model.copy()
    del less.checkpoints[place]
    return all(less.steps(stage) or not model.steps(stage) for stage in model.stages)


# Weights and settings that change where they lie


def _whole(model: Model, form: str = "") -> list[str]:
    """Places of checkpoints that somebody asks for and that are whole, of one form if it is given."""
    there = {place for _, place in model.used() if place in model.checkpoints}
    known = {place: model.checkpoints[place] for place in sorted(there)}
    return [p for p, one in known.items() if one.damage is None and form in ("", one.form)]


@edit(
    lambda model: [
        (place, is_time_kept, in_place)
        for place in _whole(model)
        for is_time_kept, in_place in product((True, False), repeat=2)
    ]
)
def weights_rewritten(model: Model, place: str, is_time_kept: bool, in_place: bool) -> None:
    """The last weight file gets other numbers, of the same size."""
    known = model.checkpoints[place]
    seed, _, number = known.shard or (known.seed, 0, 0)
    shard = (seed + 2) % SEEDS, -1 if is_time_kept else model.now(), number + (not in_place)
    model.checkpoints[place] = replace(known, shard=shard)


@edit(lambda model: product(_whole(model, "nanotron"), (1, 4)))
def checkpoint_of_hugging_face(model: Model, place: str, seed: int) -> None:
    """The folder of a public model in the place of a step."""
    model.gone.pop(place, None)
    model.checkpoints[place] = Copy(seed, model.now(), form="hugging_face")


def _across_folders(model: Model) -> Iterable[tuple[Any, ...]]:
    """Pairs of steps beside which each folder keeps one that records its training, as prefill reads that."""
    for pair in permutations(_whole(model, "nanotron"), 2):
        folders = {place.partition("/")[0] for place in pair}
        others = {p for p, one in model.checkpoints.items() if one.form == "nanotron"} - {*pair}
        if len(folders) == 2 and folders <= {place.partition("/")[0] for place in others}:
            yield *pair, 1


@edit(_across_folders)
def hugging_face_trained_further(model: Model, place: str, other: str, seed: int) -> None:
    """Two steps are a public model and the same with some tensors changed, all with equal times."""
    written = model.now()
    for one in (place, other):
        model.gone.pop(one, None)
        model.checkpoints[one] = Copy(seed, written, form="hugging_face")
    trained = ((seed + 2) % SEEDS, -1, 0)
    model.checkpoints[other] = replace(model.checkpoints[other], shard=trained)


@edit(lambda model: [(place,) for place in _whole(model)])
def settings_rewritten(model: Model, place: str) -> None:
    """Another number in the model's configuration, in place and of the same size."""
    known = model.checkpoints[place]
    variant = 1 - known.settings[0] if known.settings else 1
    model.checkpoints[place] = replace(known, settings=(variant, model.now()))


@edit(
    lambda model: [
        (place, tokens)
        for place, tokens in product(_whole(model, "nanotron"), (1_000_000, 2_000_000))
        if model.checkpoints[place].tokens != tokens
    ]
)
def checkpoint_tokens(model: Model, place: str, tokens: int) -> None:
    """The trainer's count of tokens is corrected in the checkpoint's metadata."""
    model.checkpoints[place] = replace(model.checkpoints[place], tokens=tokens)


# Folders of checkpoints

LINK = "now"


@edit(lambda model: [(stage,) for stage in model.stages if model.links.get(LINK) is None])
def checkpoints_behind_link(model: Model, stage: str) -> None:
    """The same folder, named by a link to it."""
    model.links[LINK] = model.folder(stage)
    model.stages[stage]["checkpoints"] = f"{HERE}/ckpts/{LINK}"


def _holds_bridge_of_linked(model: Model, folder: str) -> bool:
    """Whether a stage behind the link would have its own bridge among its steps, which is refused."""
    linked = [one for one, own in model.stages.items() if own["checkpoints"].endswith(f"/{LINK}")]
    return any((model.bridge(stage) or "").startswith(f"{folder}/") for stage in linked)


@edit(
    lambda model: [
        (LINK, folder)
        for folder in ("one", "two", "again", "side")
        if LINK in model.links
        and model.links[LINK] != folder
        and any(place.startswith(f"{folder}/") for place in model.checkpoints)
        and not _holds_bridge_of_linked(model, folder)
    ]
)
def link_led_elsewhere(model: Model, link: str, folder: str) -> None:
    model.links[link] = folder


def _movable(model: Model) -> Iterable[tuple[Any, ...]]:
    for stage in model.stages:
        folder = model.folder(stage)
        if folder in ("one", "two") and folder not in model.links.values() and not model.gone:
            yield stage, folder, f"{folder}_moved"


@edit(_movable)
def checkpoints_moved(model: Model, stage: str, old: str, new: str) -> None:
    """A folder gets another name, and its files keep their times; all that name it follow."""
    model.checkpoints = {
        f"{new}/{place.partition('/')[2]}" if place.startswith(f"{old}/") else place: known
        for place, known in model.checkpoints.items()
    }
    for own in model.stages.values():
        if own["checkpoints"] == f"{HERE}/ckpts/{old}":
            own["checkpoints"] = f"{HERE}/ckpts/{new}"
        if (path := (own.get("bridge") or {}).get("path", "")).startswith(f"{HERE}/ckpts/{old}/"):
            own["bridge"]["path"] = path.replace(f"/{old}/", f"/{new}/")

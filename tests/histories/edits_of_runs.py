"""Another run that is laid over the configuration's own: named in any way, or in vain."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.histories.beginning import beginning
from tests.histories.model import Model
from tests.histories.registry import edit
from tests.histories.runner import Server
from tests.histories.world import World

NAME = "other"
PLACES = {
    "results": "results",
    "configuration": "config.yaml",
    "stage": "results/stage1",
    "checkpoint": "results/stage1/by_checkpoint/step_10",
    "nothing": "nowhere",
}


def build_other_run(warm: Server, pool: Path) -> None:
    """What every history begins with, scored in a folder beside the pool."""
    world = World(pool.parent / NAME, pool)
    world.folder.mkdir()
    world.write(None, beginning(pool))
    done = warm.snakemake(world.folder)
    if done.code:
        raise RuntimeError(done.said[-3000:])


def is_told(said: str) -> bool:
    """Whether a run of Snakemake said that the other run cannot be compared."""
    return f"comparison: runs.{NAME}: " in said


def _named(model: Model) -> Iterable[tuple[Any, ...]]:
    ways = [(place, by) for place in PLACES for by in ("steps", "tokens")]
    return [way for way in ways if _run(model, *way) != model.config.get("runs")]


def _run(model: Model, place: str, by: str) -> dict[str, Any]:
    beside = Path(model.config["tokenizer"]["also_known_as"][0]).parent
    return {NAME: {"path": str(beside / NAME / PLACES[place]), "by": by}}


@edit(_named)
def other_run(model: Model, place: str, by: str) -> None:
    model.config["runs"] = _run(model, place, by)


@edit(lambda model: [()] if "runs" in model.config else [])
def other_run_removed(model: Model) -> None:
    del model.config["runs"]

"""What a user may change in the places of results, in the program, and in other runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.histories.beginning import beginning
from tests.histories.model import HERE, Model
from tests.histories.registry import edit
from tests.histories.runner import Server
from tests.histories.world import World


@edit(lambda model: [(stage, not own.get("results")) for stage, own in model.stages.items()])
def stage_results_elsewhere(model: Model, stage: str, is_elsewhere: bool) -> None:
    if is_elsewhere:
        model.stages[stage]["results"] = f"{HERE}/elsewhere/{stage}"
    else:
        del model.stages[stage]["results"]


PROTOCOLS = (
    "tier2 tier3 tier4 tier5 BRIDGE REPORT PREFILL_TOKENIZER PREFILL_SLICE PREFILL_TASK "
    "PREFILL_PROBES PREFILL_GENERATION RESULTS"
).split()


@edit(lambda model: [(name,) for name in PROTOCOLS])
def protocol_raised(model: Model, name: str) -> None:
    number = int(model.protocols.get(name, "raised-1").rpartition("-")[2]) + 1
    model.protocols[name] = f"raised-{number}"


@edit(lambda model: [()])
def provider_upgraded(model: Model) -> None:
    """Another version is required and installed, which asks otherwise."""
    version, number = model.provider
    model.provider = version + 1, number


@edit(lambda model: [()])
def provider_reinstalled(model: Model) -> None:
    """The same program in a new file."""
    version, number = model.provider
    model.provider = version, number + 1


NAME = "other"
PLACES = {
    "results": "results",
    "configuration": "config.yaml",
    "stage": "results/stage1",
    "checkpoint": "results/stage1/by_checkpoint/step_10",
    "nothing": "nowhere",
}


def build_other_run(warm: Server, pool: Path) -> None:
    """What every history begins with, scored in a folder next to the pool."""
    world = World(pool.parent / NAME, pool)
    world.folder.mkdir()
    world.write(None, beginning(pool))
    for target in ("prefill", "all"):
        done = warm.snakemake(world.folder, target)
        if done.code:
            raise RuntimeError(done.said[-3000:])


def is_reported(said: str) -> bool:
    """Whether a run of Snakemake reported that the other run cannot be compared."""
    return f"comparison: runs.{NAME}: " in said


def _named(model: Model) -> Iterable[tuple[Any, ...]]:
    ways = [(place, by) for place in PLACES for by in ("steps", "tokens")]
    return [way for way in ways if _run(model, *way) != model.config.get("runs")]


def _run(model: Model, place: str, by: str) -> dict[str, Any]:
    beside = Path(model.config["tokenizer"]["also_known_as"][0]).parent
    return {NAME: {"path": str(beside / NAME / PLACES[place]), "by": by}}


@edit(_named, about="runs")
def other_run(model: Model, place: str, by: str) -> None:
    model.config["runs"] = _run(model, place, by)


@edit(lambda model: [()] if "runs" in model.config else [], about="runs")
def other_run_removed(model: Model) -> None:
    del model.config["runs"]

"""What a user may change in settings, in the places of results and caches, in the program, and in other runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.histories.beginning import beginning
from tests.histories.model import HERE, Model
from tests.histories.registry import edit
from tests.histories.runner import Server
from tests.histories.world import World


@edit(lambda model: [(d,) for d in ("float32", "bfloat16") if d != _dtype(model)])
def dtype(model: Model, value: str) -> None:
    model.config["scoring"]["dtype"] = value


def _dtype(model: Model) -> str:
    return str(model.config["scoring"]["dtype"])


LIMITS: dict[str, tuple[Any, ...]] = {
    "seconds": (20.0, 6.0, 3.0),
    "memory_mb": (2048, 900),
    "max_error_share": (1.0, 0.5, 0.01),
}


@edit(
    lambda model: [
        (key, value)
        for key, values in LIMITS.items()
        for value in values
        if model.config["verification"][key] != value
    ]
)
def limit_of_verification(model: Model, key: str, value: float) -> None:
    """The stand-in's verifiers need seconds and memory that depend on the answer."""
    model.config["verification"][key] = value


NEUTRAL: dict[str, tuple[Any, ...]] = {
    "verification.workers": (1, 2),
    "scoring.generation_batch": (64, 3),
    "generation.memory_share": (0.85, 0.5),
    "providers.lm_eval": ("nowhere/python", ".venv-lm-eval/bin/python"),
}


@edit(lambda model: [(key, value) for key, values in NEUTRAL.items() for value in values])
def setting_of_no_result(model: Model, key: str, value: Any) -> None:
    section, _, name = key.partition(".")
    model.config.setdefault(section, {})[name] = value


@edit(lambda model: [(f"{HERE}/{n}",) for n in ("results", "results_b") if n != root(model)])
def results_elsewhere(model: Model, place: str) -> None:
    model.config["results"] = place


def root(model: Model) -> str:
    return str(model.config["results"]).rpartition("/")[2]


@edit(lambda model: [(stage, not own.get("results")) for stage, own in model.stages.items()])
def stage_results_elsewhere(model: Model, stage: str, is_elsewhere: bool) -> None:
    if is_elsewhere:
        model.stages[stage]["results"] = f"{HERE}/elsewhere/{stage}"
    else:
        del model.stages[stage]["results"]


PROTOCOLS = (
    *("tier2", "tier3", "tier4", "tier5", "BRIDGE", "REPORT"),
    *("PREFILL_TOKENIZER", "PREFILL_SLICE", "PREFILL_TASK", "PREFILL_PROBES"),
    *("PREFILL_GENERATION", "RESULTS"),
)


@edit(lambda model: [(name,) for name in PROTOCOLS])
def protocol_raised(model: Model, name: str) -> None:
    number = int(model.protocols.get(name, "raised-1").rpartition("-")[2]) + 1
    model.protocols[name] = f"raised-{number}"


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


@edit(_named, about="runs")
def other_run(model: Model, place: str, by: str) -> None:
    model.config["runs"] = _run(model, place, by)


@edit(lambda model: [()] if "runs" in model.config else [], about="runs")
def other_run_removed(model: Model) -> None:
    del model.config["runs"]

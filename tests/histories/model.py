"""What a user has: configuration, suites and checkpoints, as plain data, and written to a folder.

The model knows nothing of results or caches. A history is drawn on it alone; `World.write` then
brings the disk to what it says.
"""

import copy
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = "/WORLD"
"""Stands for the world's folder in the configuration."""

OLD = 1_600_000_000
"""Seconds; when checkpoints were written whose times were kept, as `cp -p` does."""

SECTIONS = ("slices", "tasks", "probes", "generation_tasks")

DAMAGES = ("truncated", "no_shard", "half_config", "no_config", "lost_shard")
"""Half-written in one of four ways, at another time; or one file gone, and all else as it was."""


@dataclass(frozen=True)
class Copy:
    """A checkpoint on disk: which weights, when it was written (0: long ago), and what it lacks."""

    seed: int
    written: int = 0
    damage: str | None = None


@dataclass
class Model:
    """All that decides what a run must give; `gone` are checkpoints that were there once."""

    config: dict[str, Any]
    suites: dict[str, Any]
    checkpoints: dict[str, Copy]
    protocols: dict[str, str] = field(default_factory=dict)
    clock: int = 0
    gone: dict[str, Copy] = field(default_factory=dict)

    def copy(self) -> "Model":
        return copy.deepcopy(self)

    @property
    def stages(self) -> dict[str, Any]:
        stages: dict[str, Any] = self.config["stages"]
        return stages

    def on_disk(self, stage: str) -> list[int]:
        """Steps that a stage finds."""
        folder = self.stages[stage]["checkpoints"].removeprefix(f"{HERE}/ckpts/")
        found = [key.split("/") for key in self.checkpoints]
        there = {int(step) for place, step in found if place == folder}
        return sorted(there - {step for step in there if self._lacks(folder, step)})

    def _lacks(self, folder: str, step: int) -> bool:
        return self.checkpoints[f"{folder}/{step}"].damage == "no_config"

    def steps(self, stage: str) -> list[int]:
        wanted = self.stages[stage]["steps"]
        if isinstance(wanted, list):
            return list(wanted)
        every = wanted["every"] if isinstance(wanted, dict) else 1
        return [step for step in self.on_disk(stage) if step % every == 0]

    def place(self, stage: str, step: int) -> str:
        folder = self.stages[stage]["checkpoints"].removeprefix(f"{HERE}/ckpts/")
        return f"{folder}/{step}"

    def bridge(self, stage: str) -> str | None:
        """The place of a stage's bridge among the checkpoints, whether it is there or not."""
        bridge = self.stages[stage].get("bridge")
        if bridge is None:
            return None
        if "path" in bridge:
            return str(bridge["path"]).removeprefix(f"{HERE}/ckpts/")
        steps = self.steps(bridge["stage"]) or [0]
        return self.place(bridge["stage"], bridge.get("step") or steps[-1])

    def used(self) -> Iterator[tuple[str, str]]:
        """Key of the configuration and place of every checkpoint that is asked for."""
        for stage in self.stages:
            for step in self.steps(stage):
                yield f"stages.{stage}.steps", self.place(stage, step)
            if (place := self.bridge(stage)) is not None:
                yield f"stages.{stage}.bridge", place

    def impossible(self) -> dict[str, str]:
        """Places of checkpoints that are asked for and not there, with the key that does."""
        return {place: key for key, place in self.used() if place not in self.checkpoints}

    def doubtful(self) -> bool:
        """Whether a checkpoint is asked for of which only a part without configuration is there."""
        return any(self._has(place, ("no_config",)) for _, place in self.used())

    def broken(self) -> set[str]:
        """Places of the checkpoints that are asked for and cannot be scored."""
        return {place for _, place in self.used() if self._has(place, DAMAGES)}

    def quiet(self) -> set[str]:
        """Those of them that nobody wrote to: if scored before, their results may stay."""
        return {place for _, place in self.used() if self._has(place, ("lost_shard",))}

    def restored(self, places: set[str]) -> "Model":
        """As if what was deleted or lost in these places were still there."""
        whole = self.copy()
        for place in places:
            known = self.gone[place] if place in self.gone else self.checkpoints[place]
            whole.checkpoints[place] = Copy(known.seed, known.written)
        return whole

    def _has(self, place: str, damages: tuple[str, ...]) -> bool:
        return place in self.checkpoints and self.checkpoints[place].damage in damages

    def repair(self) -> None:
        """Takes back what cannot be fulfilled, and copies anew what has no configuration."""
        for place, known in self.checkpoints.items():
            if known.damage == "no_config":
                self.clock += 1
                self.gone.pop(place, None)
                self.checkpoints[place] = Copy(known.seed, self.clock)
        for stage, own in self.stages.items():
            there = self.on_disk(stage)
            if isinstance(own["steps"], list):
                own["steps"] = [step for step in own["steps"] if step in there] or "all"
        first = next(iter(self.stages))
        for stage, own in self.stages.items():
            if (place := self.bridge(stage)) is not None and place not in self.checkpoints:
                own["bridge"] = {"stage": first, "step": self.on_disk(first)[0]}

    def suite(self, stage: str) -> dict[str, dict[str, Any]]:
        """What a stage's suites hold, section by section, by name."""
        merged: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        names = list(self.stages[stage]["suites"])
        while names:
            suite = self.suites[names.pop()]
            names += [suite["extends"]] if "extends" in suite else []
            for section, items in merged.items():
                items.update(suite.get(section, {}))
        return merged

    def results(self, stage: str) -> str:
        """Folder of a stage's results, relative to the world."""
        own = self.stages[stage].get("results") or f"{self.config['results']}/{stage}"
        return str(own).removeprefix(f"{HERE}/")


@dataclass(frozen=True)
class World:
    """A folder that holds what a model says; `pool` holds whole checkpoints by seed.

    `times` are the seconds at which checkpoints were written, so that one can be put back.
    """

    folder: Path
    pool: Path
    times: dict[int, float] = field(default_factory=dict)

    def write(self, before: Model | None, model: Model) -> None:
        """Writes what differs from before; what does not is not touched."""
        if before is None or before.config != model.config:
            self._dump("config.yaml", model.config)
        for name, suite in model.suites.items():
            if before is None or before.suites.get(name) != suite:
                self._dump(f"suites/{name}.yaml", suite)
        known = before.checkpoints if before else {}
        for place in known.keys() - model.checkpoints.keys():
            shutil.rmtree(self.folder / "ckpts" / place)
        for place, wanted in model.checkpoints.items():
            if known.get(place) != wanted:
                self._place(self.folder / "ckpts" / place, wanted)

    def _dump(self, name: str, content: Any) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(content, sort_keys=False).replace(HERE, str(self.folder))
        path.write_text(text)

    def _place(self, target: Path, wanted: Copy) -> None:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.pool / str(wanted.seed), target, copy_function=shutil.copyfile)
        weights = sorted(target.rglob("*.safetensors"))
        now = self.times.setdefault(wanted.written, time.time())
        seconds = now if wanted.written else OLD + wanted.seed
        for path in target.rglob("*"):
            os.utime(path, (seconds, seconds))
        if wanted.damage == "truncated":
            with open(weights[0], "rb+") as file:
                file.truncate(weights[0].stat().st_size - 40)
        elif wanted.damage in ("no_shard", "lost_shard"):
            weights[-1].unlink()
        elif wanted.damage == "half_config":
            path = target / "model_config.json"
            path.write_bytes(path.read_bytes()[:40])
        elif wanted.damage == "no_config":
            (target / "model_config.json").unlink()
            (target / "config.yaml").unlink()

    @property
    def snakemake_environment(self) -> dict[str, str]:
        return {"HISTORIES_COUNTS": str(self.folder / "counts.jsonl")}


def environment(world: World, model: Model) -> dict[str, str]:
    """What a run in this world is told."""
    return {**world.snakemake_environment, "HISTORIES_PROTOCOLS": json.dumps(model.protocols)}

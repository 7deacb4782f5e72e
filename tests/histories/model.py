"""What a user has: configuration, suites, data and checkpoints, as plain data.

The model knows nothing of results or caches. A history is drawn on it alone; `World.write` then
brings the disk to what it says.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from evaluation.settings.tiers import TIERS

HERE = "/WORLD"
"""Stands for the world's folder in the configuration."""

SECTIONS = ("slices", "tasks", "probes", "generation_tasks")

DAMAGES = (
    *("truncated", "no_shard", "half_config", "no_config"),
    "lost_shard",
)
"""Half-written or damaged in one of these ways, at another time; or one file gone, and all else as it was."""


@dataclass(frozen=True)
class Copy:
    """A checkpoint on disk: which weights, when it was written (0: long ago), and what it lacks.

    Later changes of single files: `shard` is the last weight file of another seed, and when it was
    written (-1: its time was kept) and as which file (another number: renamed into place);
    `settings` another number in its configuration, and when; `tokens` what its metadata count.
    `training` numbers the trainings that were restarted in its folder.
    """

    seed: int
    written: int = 0
    damage: str | None = None
    form: str = "nanotron"
    shard: tuple[int, int, int] | None = None
    settings: tuple[int, int] | None = None
    tokens: int | None = None
    training: int = 0

    @property
    def base(self) -> tuple[Any, ...]:
        """What it was as it was copied there."""
        return self.seed, self.written, self.damage, self.form, self.training

    @property
    def as_copied(self) -> "Copy":
        """The same without later changes of single files."""
        return replace(self, shard=None, settings=None, tokens=None)


@dataclass(frozen=True)
class File:
    """A file of data or of the tokenizer: its content, its time (0: long ago), and which file."""

    variant: int = 0
    written: int = 0
    number: int = 0


@dataclass
class Model:
    """All that decides what a run must give; `gone` are checkpoints that were there once."""

    config: dict[str, Any]
    suites: dict[str, Any]
    checkpoints: dict[str, Copy]
    files: dict[str, File] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    protocols: dict[str, str] = field(default_factory=dict)
    provider: tuple[int, int] = (0, 0)
    """Version of the provider that is required and installed, and which writing of its program."""
    clock: int = 0
    gone: dict[str, Copy] = field(default_factory=dict)

    def copy(self) -> "Model":
        return copy.deepcopy(self)

    def now(self) -> int:
        """A time that is later than all before."""
        self.clock += 1
        return self.clock

    @property
    def stages(self) -> dict[str, Any]:
        stages: dict[str, Any] = self.config["stages"]
        return stages

    def folder(self, stage: str) -> str:
        """Where the checkpoints of a stage lie, be it behind a link."""
        name = str(self.stages[stage]["checkpoints"]).removeprefix(f"{HERE}/ckpts/")
        return self.links.get(name, name)

    def on_disk(self, stage: str) -> list[int]:
        """Steps that a stage finds."""
        folder = self.folder(stage)
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

    def asks(self, stage: str, step: int) -> bool:
        """Whether the stage asks for the step, be its checkpoint there or deleted."""
        wanted = self.stages[stage]["steps"]
        return step in wanted if isinstance(wanted, list) else True

    def place(self, stage: str, step: int) -> str:
        return f"{self.folder(stage)}/{step}"

    def is_named(self, place: str, said: str) -> bool:
        """Whether something that was said is about a checkpoint, by its own path or by a link's."""
        folder, _, step = place.partition("/")
        names = [folder, *(link for link, target in self.links.items() if target == folder)]
        return any(f"ckpts/{name}/{step}" in said for name in names)

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

    def repeats_objective(self) -> bool:
        """Whether a stage has an objective twice, which is refused before anything else is read."""
        keys = ("tier", "group", "want", "average")
        for stage in self.stages.values():
            goals = [
                (one.get("metric") or TIERS[one["tier"]].headline, *map(one.get, keys))
                for one in stage.get("objective", ())
            ]
            if len({*goals}) < len(goals):
                return True
        return False

    def impossible(self) -> dict[str, str]:
        """Places of checkpoints that are asked for and not there, with the key that does."""
        return {place: key for key, place in self.used() if place not in self.checkpoints}

    def doubtful(self) -> bool:
        """Whether a checkpoint is asked for of which only a part without configuration is there."""
        return any(self._has(place, ("no_config",)) for _, place in self.used())

    def broken(self) -> set[str]:
        """Places of the checkpoints that are asked for and cannot be scored; of `all`, others wait."""
        found = {
            place for key, place in self.used() if self._named(key) and self._has(place, DAMAGES)
        }
        return found | {place for _, place in self.used() if self._has(place, ("half_config",))}

    def _named(self, key: str) -> bool:
        """Whether a key names its checkpoints one by one."""
        stage, _, kind = key.removeprefix("stages.").rpartition(".")
        return kind == "bridge" or isinstance(self.stages[stage]["steps"], list)

    def quiet(self) -> set[str]:
        """Those of them that nobody wrote to: if scored before, their results may stay."""
        return {place for _, place in self.used() if self._has(place, ("lost_shard",))}

    def restored(self, places: set[str]) -> "Model":
        """As if what was deleted or lost in these places were still there."""
        whole = self.copy()
        for place in places:
            known = self.gone[place] if place in self.gone else self.checkpoints[place]
            whole.checkpoints[place] = replace(known, damage=None)
        return whole

    def may_fail_to_verify(self, said: str) -> bool:
        """Whether limits are such that more answers than allowed, or all of an item, may have no verdict."""
        fails = self.config["verification"]["max_error_share"] < 1
        return self.limits_are_low and (fails or "failed on every completion" in said)

    @property
    def limits_are_low(self) -> bool:
        """Whether there are answers for which the stand-in's verifiers need more."""
        own = self.config["verification"]
        return bool(own["seconds"] < 8 or own["memory_mb"] < 1024)

    def _has(self, place: str, damages: tuple[str, ...]) -> bool:
        return place in self.checkpoints and self.checkpoints[place].damage in damages

    @property
    def provider_version(self) -> str:
        return f"0.13.{self.provider[0]}"

    def repair(self) -> None:
        """Takes back what cannot be fulfilled, and copies anew what has no configuration."""
        for place, known in self.checkpoints.items():
            if known.damage == "no_config":
                self.gone.pop(place, None)
                self.checkpoints[place] = Copy(known.seed, self.now(), form=known.form)
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
        for suite in (self.suites[name] for name in self.stages[stage]["suites"]):
            for section, changed in suite.get("overrides", {}).items():
                for name, keys in changed.items():
                    merged[section][name] = {**merged[section][name], **keys}
        return merged

    def behind(self, dataset: str) -> dict[str, File]:
        """The files of a mirror, by path."""
        folder = str(self.config["mirrors"][dataset]).removeprefix(f"{HERE}/")
        return {path: file for path, file in self.files.items() if path.startswith(f"{folder}/")}

    def results(self, stage: str) -> str:
        """Folder of a stage's results, relative to the world."""
        own = self.stages[stage].get("results") or f"{self.config['results']}/{stage}"
        return str(own).removeprefix(f"{HERE}/")


def same(one: Any, other: Any) -> bool:
    """Whether two are written alike: the order of keys counts."""
    return json.dumps(one) == json.dumps(other)

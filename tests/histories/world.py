"""The folder in which a history is played: settings, data, checkpoints, and what was there once."""

import contextlib
import copy
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages

HERE = "/WORLD"
"""Stands for the world's folder in configurations."""

OLD = 1_600_000_000
"""Seconds; when files were written whose times were kept, as `cp -p` does."""

CONFIGURATIONS = ("config.json", "model_config.json", "config.yaml")

KeyPath = list[Any]
"""Keys that lead to a value of the configuration or of the suites."""


class Impossible(Exception):
    """An edit that cannot be done, or that leaves a configuration which contradicts itself."""


def require(condition: object) -> None:
    if not condition:
        raise Impossible


@dataclass
class World:
    """A folder, and what its files say; `pool` holds whole checkpoints by seed, with the data beside it."""

    folder: Path
    pool: Path
    content: dict[str, Any]
    """The configuration (`config`) and the suites by name (`suites`)."""
    protocols: dict[str, str] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    """Which weights the checkpoint in each place has, such as `one/10`."""
    variants: Counter[str] = field(default_factory=Counter)
    """Which content a file of data or of the tokenizer has."""
    faults: set[str] = field(default_factory=set)
    """Places of checkpoints that are damaged, for which a run may end with an error."""
    gone: dict[str, Path] = field(default_factory=dict)
    """The deleted file or folder of a checkpoint that was whole, by its place."""

    # --- settings -------------------------------------------------------------------------------

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.content["config"]
        return config

    @property
    def stages(self) -> dict[str, Any]:
        stages: dict[str, Any] = self.config["stages"]
        return stages

    def at(self, path: KeyPath) -> Any:
        """What lies at a path; nothing where a key is missing."""
        found: Any = self.content
        for key in path:
            found = found.get(key, {}) if isinstance(found, dict) else found[key]
        return found

    def put(self, path: KeyPath, value: Any) -> None:
        """Gives a key a value; None takes the key away."""
        holder: Any = self.content
        for key in path[:-1]:
            holder = holder.setdefault(key, {}) if isinstance(holder, dict) else holder[key]
        if value is None:
            holder.pop(path[-1], None)
        else:
            holder[path[-1]] = copy.deepcopy(value)

    def swap(self, path: KeyPath, number: int) -> None:
        """An entry of a list or mapping and the one behind it change places."""
        found = self.at(path)
        entries = list(found.items()) if isinstance(found, dict) else list(found)
        entries[number : number + 2] = entries[number : number + 2][::-1]
        self.put(path, dict(entries) if isinstance(found, dict) else entries)

    def write(self) -> None:
        """Writes what of the settings is another text now."""
        files = {"config": self.config}
        files |= {f"suites/{name}": suite for name, suite in self.content["suites"].items()}
        for name, content in files.items():
            path = self.folder / f"{name}.yaml"
            text = yaml.safe_dump(content, sort_keys=False).replace(HERE, str(self.folder))
            if not path.exists() or path.read_text() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def check(self) -> None:
        """Raises EvaluationError or Impossible unless the settings agree with one another."""
        plan_stages(load_config(self.folder / "config.yaml"))
        for stage in self.stages:  # a run refuses a bridge that is a step
            require(self.bridge(stage) not in [self.place(stage, n) for n in self.steps(stage)])

    @property
    def environment(self) -> dict[str, str]:
        """What a run in this world is told."""
        return {
            "HISTORIES_COUNTS": str(self.folder / "counts.jsonl"),
            "HISTORIES_PROTOCOLS": json.dumps(self.protocols),
            "EVALUATION_CONFIG": str(self.folder / "config.yaml"),
        }

    def results(self, stage: str) -> str:
        """Folder of a stage's results, relative to the world."""
        own = self.stages[stage].get("results") or f"{self.config['results']}/{stage}"
        return str(own).removeprefix(f"{HERE}/")

    # --- checkpoints ----------------------------------------------------------------------------

    def checkpoint(self, place: str) -> Path:
        return self.folder / "ckpts" / place

    @property
    def broken(self) -> set[str]:
        """Places of checkpoints that are damaged, or of which files are gone."""
        return self.faults | self.gone.keys()

    def places(self) -> list[str]:
        """Of all checkpoints that are there, or what is left of them."""
        found = (self.folder / "ckpts").glob("*/*/")
        return sorted(
            f"{p.parent.name}/{p.name}" for p in found if not p.parent.is_symlink() and weights(p)
        )

    def place(self, stage: str, step: int) -> str:
        """Where a step of a stage lies, behind links."""
        name = str(self.stages[stage]["checkpoints"]).removeprefix(f"{HERE}/ckpts/")
        return f"{self.checkpoint(name).resolve().name}/{step}"

    def on_disk(self, stage: str) -> list[int]:
        """Steps that a stage finds."""
        folder = self.checkpoint(self.place(stage, 0)).parent
        there = [path for path in folder.glob("*/") if configurations(path)]
        return sorted(int(path.name) for path in there)

    def steps(self, stage: str) -> list[int]:
        wanted = self.stages[stage]["steps"]
        if isinstance(wanted, list):
            return list(wanted)
        every = wanted["every"] if isinstance(wanted, dict) else 1
        return [step for step in self.on_disk(stage) if step % every == 0]

    def bridge(self, stage: str) -> str | None:
        """The place of a stage's bridge, whether it is there or not."""
        bridge = self.stages[stage].get("bridge")
        if bridge is None:
            return None
        if "path" in bridge:
            return str(bridge["path"]).removeprefix(f"{HERE}/ckpts/")
        return self.place(
            bridge["stage"], bridge.get("step") or (self.steps(bridge["stage"]) or [0])[-1]
        )

    def source(self, place: str, seed: int) -> Path:
        """What a place has these weights from: in `side` lie public models, in the others Nanotron's."""
        return (self.pool.parent / "hf" if place.startswith("side/") else self.pool) / str(seed)

    def role(self, stage: str, step: int | None) -> str | None:
        """The place of a step of a stage; None: its bridge."""
        return self.bridge(stage) if step is None else self.place(stage, step)

    def copy_in(self, place: str, seed: int, seconds: float) -> None:
        """A whole checkpoint, whose files all have one time."""
        target = self.checkpoint(place)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.source(place, seed), target, copy_function=shutil.copyfile)
        for path in target.rglob("*"):
            os.utime(path, (seconds, seconds))
        self.seeds[place] = seed

    def forget(self, place: str) -> None:
        """Nothing of an earlier checkpoint in this place counts any more."""
        shutil.rmtree(self._buried(self.checkpoint(place)), ignore_errors=True)
        self.gone.pop(place, None)
        self.faults.discard(place)

    def take_away(self, place: str, path: Path) -> None:
        """A file of a checkpoint, or all of it, is deleted; kept aside, as a fresh run may need it."""
        if place in self.gone:
            self._exchange(self.gone[place])
        self.gone[place] = path
        self._exchange(path)

    @contextlib.contextmanager
    def restored(self, places: Iterable[str]) -> Iterator[None]:
        """As if nothing had been deleted of these checkpoints."""
        for place in places:
            self._exchange(self.gone[place])
        yield
        for place in places:
            self._exchange(self.gone[place])

    def _buried(self, path: Path) -> Path:
        return self.folder / "gone" / path.relative_to(self.folder / "ckpts")

    def _exchange(self, path: Path) -> None:
        """What is there, if anything, and what is kept aside of it change places."""
        aside, between = self._buried(path), self.folder / "between"
        for source, target in ((path, between), (aside, path), (between, aside)):
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)

    # --- data -----------------------------------------------------------------------------------

    def behind(self, dataset: str) -> list[Path]:
        """The files of a mirror."""
        folder = str(self.config["mirrors"][dataset]).replace(HERE, str(self.folder))
        return sorted(Path(folder).glob("*.jsonl"))

    def vary(self, name: str, variant: int, seconds: float, *, in_place: bool) -> None:
        """Gives a file of data or of the tokenizer another content."""
        top, *others = Path(name).parts
        source = self.pool.parent / ("data" if top.startswith("data") else top)
        text = varied(source.joinpath(*others).read_text(), variant, name)
        put(self.folder / name, text.encode(), seconds, in_place=in_place)
        self.variants[name] = variant


def weights(checkpoint: Path) -> list[Path]:
    return sorted(checkpoint.rglob("*.safetensors"))


def configurations(checkpoint: Path) -> list[Path]:
    return [path for name in CONFIGURATIONS if (path := checkpoint / name).exists()]


def put(path: Path, content: bytes, seconds: float, *, in_place: bool) -> None:
    """As an editor does that writes into the file, or as one that renames a new file into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path if in_place else path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    os.utime(new, (seconds, seconds))
    os.replace(new, path)


def varied(text: str, variant: int, name: str) -> str:
    """Another content of a file; all but the third are of the same size."""
    if name.endswith("tokenizer.json"):
        content = json.loads(text)
        ids = content["model"]["vocab"]
        if variant:
            ids["a"], ids["o"] = ids["o"], ids["a"]
        return json.dumps(content)
    if not name.endswith(".jsonl"):
        return text.replace("}}: {{", "}}> {{") if variant else text
    lines = text.splitlines(keepends=True)
    if variant == 1:  # the same rows in another order
        lines = [*lines[3:], *lines[:3]]
    elif variant == 2:  # every row
        lines = [line.replace("cat", "hat").replace("dogs", "cows") for line in lines]
    elif variant == 3:  # a row more
        lines = [*lines, lines[0].replace(" cat", " bat")]
    elif variant == 4:  # one row, corrected
        lines[2] = lines[2].translate(str.maketrans("hgd", "ktb"))
    return "".join(lines)

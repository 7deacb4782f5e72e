"""The folder in which a history is played: brings the disk to what a model says."""

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from tests.histories.model import HERE, Copy, File, Model, same

PROVIDER = Path(__file__).parents[1] / "providers/stand_in.py"

OLD = 1_600_000_000
"""Seconds; when files were written whose times were kept, as `cp -p` does."""


@dataclass(frozen=True)
class World:
    """A folder that holds what a model says; `pool` holds whole checkpoints by seed.

    `times` are the seconds at which files were written, so that one can be put back.
    """

    folder: Path
    pool: Path
    times: dict[int, float] = field(default_factory=dict)

    def write(self, before: Model | None, model: Model) -> None:
        """Writes what differs from before; what does not is not touched."""
        if before is None or not same(before.config, model.config):
            self._dump("config.yaml", model.config)
        for name, suite in model.suites.items():
            if before is None or not same(before.suites.get(name), suite):
                self._dump(f"suites/{name}.yaml", suite)
        if before is None or model.provider != before.provider:
            self._write_provider(model)
        self._write_checkpoints(before.checkpoints if before else {}, model.checkpoints)
        for link, target in model.links.items():
            _lead(self.folder / "ckpts" / link, target)
        for name, file in model.files.items():
            known = before.files.get(name) if before else None
            if file != known:
                self._write_file(name, known, file)

    def _write_checkpoints(self, known: Mapping[str, Copy], wanted: Mapping[str, Copy]) -> None:
        for place in known.keys() - wanted.keys():
            shutil.rmtree(self.folder / "ckpts" / place)
        for place, copy in wanted.items():
            was, target = known.get(place), self.folder / "ckpts" / place
            if was == copy:
                continue
            if was and not was.damage and copy == replace(was, damage="lost_shard"):
                _weights(target)[-1].unlink()  # the other files stay the same files
                continue
            if was is None or was.base != copy.base:
                self._place(target, copy)
                was = copy.as_copied
            self._change(target, was, copy)

    def _dump(self, name: str, content: Any) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(content, sort_keys=False).replace(HERE, str(self.folder))
        path.write_text(text)

    def _write_provider(self, model: Model) -> None:
        """The Python of a provider's environment, which runs a stand-in of its version."""
        path, number = self.folder / "provider/python", model.provider[0]
        does = {
            "version": model.provider_version,
            "question": {"right": number % 3},
            "verb": ("sat", "ran")[number % 2],
        }
        words = [sys.executable, str(PROVIDER), json.dumps(does)]
        path.parent.mkdir(exist_ok=True)
        new = path.with_name("new")
        new.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        new.chmod(0o755)
        os.replace(new, path)

    def _place(self, target: Path, wanted: Copy) -> None:
        shutil.rmtree(target, ignore_errors=True)
        source = self.pool if wanted.form == "nanotron" else self.pool.parent / "hf"
        shutil.copytree(source / str(wanted.seed), target, copy_function=shutil.copyfile)
        weights, settings = _weights(target), _settings(target)
        seconds = self._time(wanted.written) if wanted.written else OLD + wanted.seed
        if wanted.training:
            with open(target / "config.yaml", "a") as file:
                file.write(f"optimizer: {{learning_rate: {wanted.training}.0}}\n")
        for path in target.rglob("*"):
            os.utime(path, (seconds, seconds))
        if wanted.damage == "truncated":
            with open(weights[0], "rb+") as file:
                file.truncate(weights[0].stat().st_size - 40)
        elif wanted.damage in ("no_shard", "lost_shard"):
            weights[-1].unlink()
        elif wanted.damage == "half_config":
            settings[0].write_bytes(settings[0].read_bytes()[:40])
        elif wanted.damage == "no_config":
            for path in settings:
                path.unlink()

    def _change(self, target: Path, was: Copy, wanted: Copy) -> None:
        """Single files of a checkpoint, each as it was done: in place, or renamed into place."""
        if wanted.shard and wanted.shard != was.shard:
            seed, written, number = wanted.shard
            path = _weights(target)[-1]
            source = self.pool if wanted.form == "nanotron" else self.pool.parent / "hf"
            content = _weights(source / str(seed))[-1].read_bytes()
            in_place = number == (was.shard[2] if was.shard else 0)
            time_kept = path.stat().st_mtime if written < 0 else self._time(written)
            _put(path, content, time_kept, in_place=in_place)
        if wanted.settings and wanted.settings != was.settings:
            variant, written = wanted.settings
            for path in _settings(target):
                text = path.read_text()
                for old, new in zip(EPSILONS[1 - variant], EPSILONS[variant], strict=True):
                    text = text.replace(f": {old}", f": {new}")
                _put(path, text.encode(), self._time(written), in_place=True)
        if wanted.tokens is not None and wanted.tokens != was.tokens:
            path = target / "checkpoint_metadata.json"
            content = json.loads(path.read_text())
            content["metas"]["consumed_tokens_total"] = wanted.tokens
            path.write_text(json.dumps(content, indent=2))

    def _write_file(self, name: str, was: File | None, wanted: File) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = Path(name).parts
        source = self.pool.parent / ("data" if parts[0].startswith("data") else "")
        original = source.joinpath(*parts[1:] if parts[0].startswith("data") else parts)
        content = varied(original.read_text(), wanted.variant, path.name).encode()
        in_place = was is not None and was.number == wanted.number
        _put(path, content, self._time(wanted.written), in_place=in_place)

    def _time(self, stamp: int) -> float:
        return self.times.setdefault(stamp, time.time()) if stamp else OLD


EPSILONS = (("1e-06", "1.0e-06"), ("1e-05", "1.0e-05"))
"""A number that every checkpoint's configuration has, and another, as JSON and YAML write them."""


def _weights(checkpoint: Path) -> list[Path]:
    return sorted(checkpoint.rglob("*.safetensors"))


def _settings(checkpoint: Path) -> list[Path]:
    names = ("config.json", "model_config.json", "config.yaml")
    return [path for name in names if (path := checkpoint / name).exists()]


def _put(path: Path, content: bytes, seconds: float, *, in_place: bool) -> None:
    """As an editor does that writes into the file, or as one that renames a new file into place."""
    if in_place:
        path.write_bytes(content)
        os.utime(path, (seconds, seconds))
        return
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    os.utime(new, (seconds, seconds))
    os.replace(new, path)


def _lead(link: Path, target: str) -> None:
    if link.is_symlink() and os.readlink(link) == target:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def varied(text: str, variant: int, name: str) -> str:
    """Another content of a file; all but the third are of the same size."""
    if name == "tokenizer.json":
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


def environment(world: World, model: Model) -> dict[str, str]:
    """What a run in this world is told."""
    counts = str(world.folder / "counts.jsonl")
    return {
        "HISTORIES_COUNTS": counts,
        "HISTORIES_PROTOCOLS": json.dumps(model.protocols),
        "HISTORIES_PROVIDER": model.provider_version,
    }

"""Where the rows of a slice or task come from: local files, a mirror, or the hub.

Who reads the rows cannot tell the difference, apart from `Origin`, which is recorded.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.prefill.files import Row, is_data_file, read_rows
from evaluation.prefill.mirrors import mirror_files, mirror_of
from evaluation.settings.generation import GenerationTask
from evaluation.settings.provided import ProviderTask
from evaluation.settings.sources import Source
from evaluation.settings.suites import ProviderChoices, Task


@dataclass(frozen=True)
class Origin:
    """One split, resolved: local `files`, or None where it is on the hub."""

    source: Source
    config: str | None
    split: str
    files: tuple[Path, ...] | None

    def __str__(self) -> str:
        if self.source.dataset is None:
            return ", ".join(map(str, self.source.files))
        parts = [self.source.dataset, self.config, f"split {self.split}"]
        return " ".join(part for part in parts if part)

    def rows(self, fields: Sequence[str] | None = None) -> Iterator[Row]:
        """The rows in order; where the format allows, only `fields` of them. Raises SourceError."""
        if self.files is None:
            from evaluation.prefill.hub import hub_rows

            yield from hub_rows(self.source, config=self.config, split=self.split, fields=fields)
        else:
            for file in self.files:
                yield from read_rows(file, fields)

    def state(self) -> dict[str, Any]:
        """What tells whether local files have changed since they were read."""
        if self.files is None:
            return {"kind": "hub"}
        stats = [part.stat() for path in self.files for part in _parts(path)]
        kind = "files" if self.source.dataset is None else "mirror"
        return {
            "kind": kind,
            "files": [path.name for path in self.files],
            "size": sum(stat.st_size for stat in stats),
            "changed": max(stat.st_mtime_ns for stat in stats),
        }


def locate(
    source: Source,
    mirrors: dict[str, str],
    *,
    config: str | None = None,
    split: str | None = None,
) -> Origin:
    """Finds a source's split (its own config and split if none are given); raises SourceError."""
    config = source.config if config is None else config
    split = source.split if split is None else split
    if source.dataset is None:
        return Origin(source, config, split, tuple(_local_files(source.files)))
    root = mirror_of(source.dataset, mirrors)
    if root is None:
        return Origin(source, config, split, None)
    files = mirror_files(
        root, dataset=source.dataset, config=config, split=split, patterns=source.data_files
    )
    return Origin(source, config, split, tuple(files))


def locate_task(
    task: Task | ProviderChoices, mirrors: dict[str, str]
) -> tuple[list[Origin], list[Origin]]:
    """Where the questions of each configuration are, and its solved examples if there are any.

    Nothing of a provider's task: only the provider knows.
    """
    if isinstance(task, ProviderChoices):
        return [], []
    configs = task.configs or (task.config,)
    origins = [locate(task, mirrors, config=config) for config in configs]
    if not task.num_fewshot:
        return origins, []
    return origins, [
        locate(task, mirrors, config=config, split=task.fewshot_split) for config in configs
    ]


def locate_generation(task: GenerationTask | ProviderTask, mirrors: dict[str, str]) -> list[Origin]:
    """Where the prompts of a generation task are, and its solved examples if a split has them.

    Nothing of a provider's task: only the provider knows.
    """
    if isinstance(task, ProviderTask):
        return []
    origins = [locate(task, mirrors)]
    if task.num_fewshot and not task.fewshot_examples:
        origins.append(locate(task, mirrors, split=task.fewshot_split))
    return origins


def describe_source(origins: Sequence[Origin]) -> dict[str, Any]:
    """What a meta.json says about where data came from."""
    from evaluation.prefill.hub import resolved_commit

    source = origins[0].source
    on_hub = any(origin.files is None for origin in origins)
    return {
        "dataset": source.dataset,
        "revision": source.revision,
        "resolved": resolved_commit(source) if on_hub else None,
        "state": [origin.state() for origin in origins],
    }


def _local_files(patterns: Sequence[str]) -> list[Path]:
    files: list[Path] = []
    for pattern in patterns:
        _check_no_circles(pattern)
        found = [Path(path) for path in sorted(glob.glob(pattern, recursive=True))]
        if not found:
            raise SourceError(f"files: nothing is at {pattern}; correct the path")
        for path in found:
            if path.is_dir():
                files += mirror_files(path, dataset=str(path), config=None, split="train")
            elif is_data_file(path):
                files.append(path)
            elif path.exists() and not path.is_file():
                raise SourceError(f"files: {path} is a pipe, socket or device; give a file")
            else:
                raise SourceError(
                    f"files: {path} is not Parquet, JSON(L) or text by its name; rename or convert it"
                )
    return files


def _check_no_circles(pattern: str) -> None:
    """Raises SourceError if `**` would follow links to folders that it goes through anyhow.

    Two such links lead to more paths than could ever be listed.
    """
    if "**" not in pattern:
        return
    before = pattern.partition("**")[0]
    tops = glob.glob(before) if before else ["."]
    seen: dict[tuple[int, int], str] = {}
    for parent, _, _ in chain.from_iterable(os.walk(top, followlinks=True) for top in tops):
        status = os.stat(parent)
        known = seen.setdefault((status.st_dev, status.st_ino), parent)
        if known != parent:
            raise SourceError(f"files: {parent} leads to {known} again; remove that link")


def _parts(path: Path) -> list[Path]:
    return [part for part in path.rglob("*") if part.is_file()] if path.is_dir() else [path]

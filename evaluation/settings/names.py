"""Rules for names and for folders of results: one name and one place for each thing.

A stage's name is a target of the workflow and a folder. Names that are only shown may hold more, but
nothing that a table, page or terminal would take for a command.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

RULES = (
    *("all", "default", "prefill", "prefill_caches", "check", "score", "collect", "file"),
    *("report", "report_of_stage"),
)
SHARED_FILES = (*("scores", "report.html", "overview.rst", "comparison.csv", "report.log"),)
"""Files and folders in the results folder, next to the folders of the stages."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
LABEL = r"^\w([\w .,:/+()-]*[\w.)+])?$"

Name = Annotated[str, Field(pattern=f"^{NAME}$", max_length=80)]
"""Name of a stage, slice or task, which becomes the name of a folder."""
Label = Annotated[str, Field(pattern=LABEL, max_length=80)]
"""Name of a probe, verifier or group, which is only shown."""


def check_names(names: Iterable[str]) -> None:
    """Raise ValueError for a stage that is called like a rule, a shared file or, but for case, another."""
    taken = {*RULES, *SHARED_FILES}
    for name in names:
        if name.casefold() in taken:
            raise ValueError(f"stages.{name}: a rule, file or other stage has this name; rename it")
        taken.add(name.casefold())


def check_folders(results: str, cache: str, stages: Mapping[str, str]) -> None:
    """Raise ValueError if the results of a stage overlap with another stage's, scores or the cache."""
    root = Path(os.path.realpath(results))
    taken = {root / "scores": "scores", root / ".config": "scores"}
    taken[Path(os.path.realpath(cache))] = "the cache"
    for name, folder in stages.items():
        own = Path(os.path.realpath(folder))
        for path, owner in taken.items():
            if own.is_relative_to(path) or path.is_relative_to(own):
                raise ValueError(
                    f"stages.{name}.results: {folder} overlaps with the folder of {owner}; choose another"
                )
        taken[own] = f"stage {name}"

"""Rules for names and for folders of results: one name and one place for each thing.

A stage's name is a target of the workflow, a part of its rules' names, and a folder. Names that are
only shown may hold more, but nothing that a table, page or terminal would take for a command.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from evaluation.settings.tiers import TIERS

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
"""Pattern of names of stages, slices and tasks, which become names of folders."""

LABEL = r"\w(?:[\w .,:/+()-]*[\w.)+])?"
"""Pattern of names of probes, verifiers, groups and runs, which are only shown."""

LONGEST = 80
TARGETS = ("all", "prefill", "front_page", "comparison")
PREFILL = ("prefill_tokenizer", *(f"prefill_{tier.cache.name}" for tier in TIERS.values()))
SHARED_FILES = (
    *("scores", "report.html", "overview.rst"),
    *("comparison.csv", "comparison.json", "comparison.html", "comparison.log"),
    "front_page.log",
)
"""Files and folders in the results folder, next to the folders of the stages."""


def check_name(name: str) -> str:
    """Return the name of a stage, slice or task unchanged if a folder can have it.

    Raises:
        ValueError: It is too long, or has other characters than `NAME`.
    """
    if not re.fullmatch(NAME, name) or len(name) > LONGEST:
        raise ValueError(
            f"{name!r}: a name is made of letters, digits, `.`, `_` and `-`, begins with a letter or "
            f"digit, and is no longer than {LONGEST}; rename it"
        )
    return name


def check_label(name: str, longest: int = LONGEST) -> str:
    """Return the name of a probe, verifier, group or run unchanged if it can be shown everywhere.

    Raises:
        ValueError: It is too long, or has other characters than `LABEL`.
    """
    if not re.fullmatch(LABEL, name) or len(name) > longest:
        raise ValueError(
            f"{name!r}: a name has 1 to {longest} characters: letters, digits, spaces and "
            "`_ . , : / + ( ) -`; it begins with a letter or digit and does not end with a space; "
            "rename it"
        )
    return name


Name = Annotated[str, AfterValidator(check_name)]
Label = Annotated[str, AfterValidator(check_label)]


def check_names(names: Iterable[str]) -> None:
    """Refuse names of stages that clash with a rule, a shared file or another stage.

    Raises:
        ValueError: There is such a name.
    """
    known: dict[str, str] = {}
    for name in names:
        key = f"stages.{name}"
        if name in (*TARGETS, *PREFILL):
            raise ValueError(
                f"{key}: the workflow has a rule {name!r} of its own; rename the stage"
            )
        if name.casefold() in SHARED_FILES:
            raise ValueError(
                f"{key}: {name!r} is a file or folder of the results of all stages; rename the stage"
            )
        if name.casefold() in known:
            raise ValueError(
                f"{key}: differs from {known[name.casefold()]} only in upper and lower case, and some "
                "file systems take them for one folder; rename one of them"
            )
        known[name.casefold()] = name


def check_folders(results: str, cache: str, stages: Mapping[str, str]) -> None:
    """Refuse results folders of stages that overlap with other folders, also through links.

    Raises:
        ValueError: One is that of all results, of scores, of the cache or of another stage.
    """
    root, prefilled = (Path(os.path.realpath(one)) for one in (results, cache))
    seen: dict[Path, str] = {}
    for name, folder in stages.items():
        key, own = f"stages.{name}.results", Path(os.path.realpath(folder))
        if own == root:
            raise ValueError(f"{key}: {folder} is the folder of all results; choose one inside it")
        if {root / "scores", root / ".config"} & {own, *own.parents}:
            raise ValueError(
                f"{key}: {folder} is where all stages keep their scores; choose another"
            )
        if own.is_relative_to(prefilled):
            raise ValueError(f"{key}: {folder} lies in the cache {cache}; choose another folder")
        for path, other in seen.items():
            if own.is_relative_to(path):
                place = "is" if own == path else "lies inside"
                raise ValueError(
                    f"{key}: {folder} {place} the folder of stage {other}; choose another"
                )
            if path.is_relative_to(own):
                raise ValueError(
                    f"{key}: the folder of stage {other} lies inside {folder}; choose another"
                )
        seen[own] = name

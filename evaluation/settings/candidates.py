"""What a stage chooses from: its steps, each by its number, and its merges, each by its name.

A merge is the weighted mean of checkpoints, which nobody saved; see `checkpoints.merge`.
"""

import math
import re
from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from evaluation.settings.model import Fraction, Settings
from evaluation.settings.names import NAME, Name
from evaluation.settings.steps import step_named

Candidate = int | str
"""The number of a step, or the name of a merge."""

FOLDER = rf"step_\d+|merge_{NAME}"
"""Names of the folders of candidates, as a pattern."""

_TOLERANCE = 1e-6
"""By which a sum of weights may differ from 1, as decimals are rounded."""


def candidate_folder(candidate: Candidate) -> str:
    return f"step_{candidate}" if isinstance(candidate, int) else f"merge_{candidate}"


def candidate_of(folder: str) -> Candidate:
    """Return what a name that `candidate_folder` made is the folder of."""
    kind, _, name = folder.partition("_")
    return int(name) if kind == "step" else name


def candidate_label(candidate: Candidate) -> str:
    """Return what sentences call it, e.g. `step 10` or `merge last3`."""
    return f"step {candidate}" if isinstance(candidate, int) else f"merge {candidate}"


def candidate_option(candidate: Candidate) -> str:
    """Return the option of a command that names it."""
    return f"--{candidate_label(candidate)}"


def candidate_rank(candidate: Candidate) -> tuple[bool, int, str]:
    """Order steps by their numbers, then merges by their names."""
    is_step = isinstance(candidate, int)
    return not is_step, candidate if isinstance(candidate, int) else 0, str(candidate)


def candidate_columns(candidate: Candidate) -> dict[str, Candidate | None]:
    """Return what files call it by: `step` is a number or null, `merge` a name or null."""
    is_step = isinstance(candidate, int)
    return {"step": candidate if is_step else None, "merge": None if is_step else candidate}


def steps_among(candidates: Iterable[Candidate]) -> list[int]:
    """Return the steps in ascending order, without the merges."""
    return sorted(one for one in candidates if isinstance(one, int))


def _read_member(value: object) -> str:
    """Read `12000` or `stage2/12000`, and return it as text."""
    text = str(value)
    if isinstance(value, bool) or step_named(text.rpartition("/")[2]) is None:
        raise ValueError(f"{value!r} is no checkpoint; write a step, or `stage/step`")
    return text


MemberName = Annotated[str, BeforeValidator(_read_member)]
"""A step of the stage itself, or `stage/step`."""


class MergeRecipe(Settings):
    """Checkpoints of which a weighted mean is evaluated, as if it had been saved."""

    mean: tuple[MemberName, ...] | None = Field(
        None, min_length=2, description="Steps, or `stage/step`, all of the same weight."
    )
    weights: dict[MemberName, Annotated[Fraction, Field(gt=0, le=1)]] | None = Field(
        None, min_length=2, description="Weight of each step, or `stage/step`; their sum is 1."
    )

    @model_validator(mode="after")
    def _one_recipe(self) -> Self:
        if (self.mean is None) == (self.weights is None):
            raise ValueError("give either `mean` or `weights`")
        if len(set(self.mean or ())) < len(self.mean or ()):
            raise ValueError("`mean` names a checkpoint twice; give it more weight by `weights`")
        total = math.fsum((self.weights or {"": 1.0}).values())
        if abs(total - 1) > _TOLERANCE:
            raise ValueError(
                f"the sum of `weights` is {total:.10g}; change them so that it is 1, or write "
                "`mean` for equal ones"
            )
        return self

    def members(self, stage: str) -> list[tuple[str, int, float]]:
        """Return the stage, the step and the weight of each member of a merge of `stage`."""
        weights = self.weights or dict.fromkeys(self.mean or (), 1.0)
        total = math.fsum(weights.values())
        return [
            (name.rpartition("/")[0] or stage, int(name.rpartition("/")[2]), weight / total)
            for name, weight in weights.items()
        ]


def _read_merge_name(name: object) -> object:
    if isinstance(name, int) or re.fullmatch(r"\d+|bridge", str(name)):
        raise ValueError(f"{name!r}: a merge needs a name that no step or bridge has; rename it")
    return name


MergeName = Annotated[Name, BeforeValidator(_read_merge_name)]

"""Candidates of a stage: its steps, each by its number, and its merges, each by its name.

A configuration gives steps as a list, `all` or `every: N`. A merge is a weighted mean of
checkpoints, which training did not save; see `checkpoints.merge`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from evaluation.settings.model import Count, Fraction, Settings, Step
from evaluation.settings.names import NAME, Name
from evaluation.settings.steps import step_named

Candidate = int | str
"""The number of a step, or the name of a merge."""

FOLDER = rf"step_\d+|merge_{NAME}"
"""Names of the folders of candidates, as a pattern."""

FEWEST, MOST = 3, 5
"""Fewest and most last checkpoints from which their noise is estimated: the last half of them."""

Checkpoint = TypeVar("Checkpoint")

_TOLERANCE = 1e-6
"""By which a sum of weights may differ from 1, as decimals are rounded."""


def candidate_folder(candidate: Candidate) -> str:
    """Return the name of the folder of a candidate's results: `step_10`, or `merge_last3`."""
    return candidate_label(candidate).replace(" ", "_")


def candidate_of(folder: str) -> Candidate:
    """Return the candidate that a folder belongs to; the inverse of `candidate_folder`."""
    kind, _, name = folder.partition("_")
    return int(name) if kind == "step" else name


def candidate_label(candidate: Candidate) -> str:
    """Return a candidate's name in sentences: `step 10`, or `merge last3`."""
    return f"step {candidate}" if isinstance(candidate, int) else f"merge {candidate}"


def candidate_option(candidate: Candidate) -> str:
    """Return the option of a command that names a candidate: `--step 10`, or `--merge last3`."""
    return f"--{candidate_label(candidate)}"


def candidate_rank(candidate: Candidate) -> tuple[bool, int, str]:
    """Return a key for sorting: steps by their numbers, then merges by their names."""
    step = candidate if isinstance(candidate, int) else None
    return step is None, step or 0, str(candidate)


def candidate_columns(candidate: Candidate) -> dict[str, Candidate | None]:
    """Return the columns `step` and `merge` of results files, one of which is None."""
    is_step = isinstance(candidate, int)
    return {"step": candidate if is_step else None, "merge": None if is_step else candidate}


def steps_among(candidates: Iterable[Candidate]) -> list[int]:
    """Return the steps among candidates in ascending order, without the merges."""
    return sorted(candidate for candidate in candidates if isinstance(candidate, int))


def last_ones(checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
    """Return the last checkpoints of all, or what belongs to them, from which their noise is estimated."""
    return checkpoints[-max(FEWEST, min(MOST, len(checkpoints) // 2)) :]


class StepInterval(Settings):
    """Every step on disk that is a multiple of `every`."""

    every: Count = Field(description="Steps on disk that are multiples of this.")


def _read_steps(value: Any) -> Any:
    """Read one of the three forms, or raise ValueError; return a value that was already read."""
    if isinstance(value, StepInterval) or value == "all":
        return value
    if isinstance(value, list | tuple):
        return _read_list(value)
    written = re.fullmatch(r"\s*every\s*:\s*(\d+)\s*", value) if isinstance(value, str) else None
    every = int(written[1]) if written else value.get("every") if isinstance(value, dict) else None
    if every is None or (isinstance(value, dict) and len(value) > 1):
        listed = f"[{value}]" if _is_step(value) else "[1000, 2000]"
        raise ValueError(
            f"{value!r} is not a list of steps; write `{listed}`, `all` or `{{every: 500}}`"
        )
    if not _is_step(every) or every == 0:
        raise ValueError(f"every: {every!r} is not a whole number from 1 on")
    return StepInterval(every=every)


def _read_list(steps: list[Any] | tuple[Any, ...]) -> tuple[int, ...]:
    wrong = next((step for step in steps if not _is_step(step)), None)
    if wrong is not None or None in steps:
        raise ValueError(f"{wrong!r} is not a step; steps are whole numbers from 0 on")
    twice = next((step for step, times in Counter(steps).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} appears twice; steps must be distinct")
    if not steps:
        raise ValueError("no steps; list at least one, or write `all` or `{every: 500}`")
    return tuple(steps)


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


Steps = Annotated[tuple[Step, ...] | Literal["all"] | StepInterval, BeforeValidator(_read_steps)]


def is_requested(step: int, steps: Steps) -> bool:
    """Return whether a stage's key `steps` requests a step that is on disk."""
    if isinstance(steps, tuple):
        return step in steps
    return step % (steps.every if isinstance(steps, StepInterval) else 1) == 0


def _read_member(value: object) -> str:
    """Read `12000` or `stage2/12000`, and return it as text."""
    text = str(value)
    if isinstance(value, bool) or step_named(text.rpartition("/")[2]) is None:
        raise ValueError(f"{value!r} is not a checkpoint; write a step, or `stage/step`")
    return text


MemberName = Annotated[str, BeforeValidator(_read_member)]
"""A step of the stage itself, or `stage/step`."""


class MergeRecipe(Settings):
    """Checkpoints whose weighted mean is evaluated, as if training had saved it."""

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
        """Return stage, step and weight of each member, as written; the weights add up to 1.

        A member without a stage belongs to `stage`.
        """
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

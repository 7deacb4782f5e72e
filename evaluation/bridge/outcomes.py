"""What each item contributes to a task's accuracy or to a rate of Tier4."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from evaluation.bridge.statistics import Floats
from evaluation.errors import BridgeError
from evaluation.grading.accuracy import candidate_scores, group_items, group_names, judge
from evaluation.grading.rates import outcome
from evaluation.settings.checks import Check, Kind


@dataclass(frozen=True, kw_only=True)
class Credits:
    """Items of a task: their ids, what they belong to, and their credit by every normalization."""

    ids: tuple[str, ...]
    clusters: Sequence[str] | None
    strata: Sequence[str] | None
    credit: Mapping[str, Floats]


def item_credits(candidates: pa.Table) -> Credits:
    """Credits in [0, 1] from a table of candidates, by the scorer's own rules; see `accuracy`."""
    groups = group_items(candidates)
    gold = candidates["gold"].to_numpy(zero_copy_only=False)
    return Credits(
        ids=tuple(candidates["item"].take(groups.starts).to_pylist()),
        clusters=group_names(candidates, "cluster", groups),
        strata=group_names(candidates, "stratum", groups),
        credit={
            name: judge(scores, gold, groups).credit
            for name, scores in candidate_scores(candidates).items()
        },
    )


def _kinds() -> dict[str, Kind]:
    """The kind of each check that a suite may name."""
    models = get_args(get_args(Check)[0])
    return {get_args(model.model_fields["check"].annotation)[0]: model.kind for model in models}


KINDS = _kinds()


def prompt_outcome(prompt: Mapping[str, Any], rate: str, path: Path) -> bool | None:
    """What a prompt of a tier4 file contributes to a rate; None if it does not count for it."""
    checks = []
    for name, passed in prompt["checks"].items():
        kind = KINDS.get(re.sub(r"-\d+$", "", name))
        if kind is None:
            raise BridgeError(
                f"{path}: prompt {prompt['id']}: no check is called {name!r}; score again"
            )
        checks.append({"kind": kind, "passed": passed})
    return outcome({"stop_reason": prompt["stop_reason"], "checks": checks}, rate)


def as_credit(outcomes: list[bool]) -> Floats:
    return np.asarray(outcomes, dtype=np.float64)

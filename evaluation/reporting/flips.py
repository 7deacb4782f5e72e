"""Questions and prompts that a checkpoint gained or lost against the bridge, with both answers."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from evaluation.errors import ResultsError, printable
from evaluation.reporting.samples import ItemAnswer, credits_of, samples_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

WITH_ANSWERS = [name for name, tier in TIERS.items() if tier.kind == "credit"]
"""Tiers of questions and prompts."""


@dataclass(frozen=True, kw_only=True)
class AnswerFlip:
    """A question whose credit changed; `ours` and `theirs` are the samples of both checkpoints."""

    tier: TierName
    item: str
    gain: float
    ours: ItemAnswer
    theirs: ItemAnswer


def gains(folder: Path, bridge: Path, tier: TierName) -> pd.DataFrame:
    """Return the credits of both checkpoints by item and unit, and what was gained; units of both alone."""
    ours, theirs = (credits_of(side, tier) for side in (folder, bridge))
    if ours["item"].equals(theirs["item"]) and ours["unit"].equals(theirs["unit"]):
        both = ours.to_pandas().assign(before=theirs["credit"].to_pandas())
    else:
        before = theirs.to_pandas().rename(columns={"credit": "before"})
        both = ours.to_pandas().merge(before, on=["item", "unit"])
    both = both.dropna(subset=["item", "credit", "before"])
    return both.assign(gain=both["credit"] - both["before"])


def moves(plan: StagePlan, frame: pd.DataFrame) -> pd.DataFrame:
    """Return for each checkpoint and item how many questions were gained and lost, where a delta exists."""
    rows = []
    compared = frame[frame["delta"].notna() & frame["tier"].isin(WITH_ANSWERS)]
    for (checkpoint, step, tier), own in compared.groupby(
        ["checkpoint", "step", "tier"], sort=False
    ):
        both = gains(plan.step_folder(int(step)), plan.bridge_folder, tier)
        for item, units in both[both["item"].isin(own["item"])].groupby("item", sort=False):
            gained, lost = int((units["gain"] > 0).sum()), int((units["gain"] < 0).sum())
            about = {"checkpoint": checkpoint, "tier": tier, "item": item, "n": len(units)}
            rows.append({**about, "gained": gained, "lost": lost})
    return pd.DataFrame(rows, columns=["checkpoint", "tier", "item", "n", "gained", "lost"])


def flips_of(
    plan: StagePlan, step: int, tier: TierName, items: Sequence[str], most: int
) -> Iterator[AnswerFlip]:
    """Yield the questions of each item whose credit changed most, at most `most` lost and `most` gained.

    Raises:
        ResultsError: Results or the texts that were scored are missing or damaged.
    """
    sides = plan.step_folder(step), plan.bridge_folder
    both = gains(*sides, tier)
    for item in items:
        own = both[(both["item"] == item) & (both["gain"] != 0)].sort_values("gain", kind="stable")
        lost, gained = own[own["gain"] < 0].head(most), own[own["gain"] > 0].tail(most)
        change = {**_by_unit(lost), **_by_unit(gained)}
        ours, theirs = (_first(samples_of(plan, side, tier, item, list(change))) for side in sides)
        for unit, gain in change.items():
            if unit in ours and unit in theirs:
                mine, other = ours[unit], theirs[unit]
                yield AnswerFlip(tier=tier, item=item, gain=gain, ours=mine, theirs=other)


def _by_unit(rows: pd.DataFrame) -> dict[str, float]:
    return dict(zip(rows["unit"], rows["gain"].map(float), strict=True))


def _first(samples: Iterator[ItemAnswer]) -> dict[str, ItemAnswer]:
    """Return the best sample of each prompt, or else its first one."""
    chosen: dict[str, ItemAnswer] = {}
    for sample in samples:
        known = chosen.setdefault(sample.id, sample)
        if (sample.credit or 0) > (known.credit or 0):
            chosen[sample.id] = sample
    return chosen


def answered(
    plan: StagePlan, step: int, tier: TierName, item: str, most: int
) -> Iterator[tuple[ItemAnswer, ItemAnswer | None]]:
    """Yield the first questions of an item with both sides' answers; raise ResultsError."""
    before: dict[str, ItemAnswer] = {}
    if plan.stage.bridge is not None and (plan.bridge_folder / TIERS[tier].units_file).exists():
        before = _first(samples_of(plan, plan.bridge_folder, tier, item))
    samples = _first(samples_of(plan, plan.step_folder(step), tier, item))
    for id in [*samples][:most]:
        yield samples[id], before.get(id)


def tier_of(plan: StagePlan, folder: Path, item: str) -> TierName:
    """Return the tier that has an item with answers in a checkpoint's results; raise ResultsError."""
    known: list[str] = []
    for tier in WITH_ANSWERS:
        if tier in plan.tiers and (folder / TIERS[tier].units_file).exists():
            names = dict.fromkeys(credits_of(folder, tier)["item"].to_pylist())
            if item in names:
                return tier
            known += filter(None, names)
    raise ResultsError(
        f"{folder}: has no answers to {item!r}, but to {', '.join(known) or 'nothing'}"
    )


def as_text(sample: ItemAnswer, before: ItemAnswer | None = None, width: int = 100) -> str:
    """Return a question with its answers for a terminal: the end of a long prompt, texts whole."""
    question = sample.prompt[-1200:].strip()
    parts = [f"── {sample.id}", question, f"right:  {sample.target}"]
    for name, side in (("bridge", before), ("answer", sample)):
        if side is not None:
            credit = "not judged" if side.credit is None else f"{side.credit:g}"
            why = f" ({'; '.join(side.reasons)})" if side.reasons else ""
            parts.append(f"{name}: [{credit}]{why} {side.answer}")
            parts += [f"    {c.score:10.3f}  {c.text}" for c in side.choices]
    lines = (printable(line) for part in parts for line in part.splitlines())
    indent = "    "
    return "\n".join(textwrap.fill(line, width, subsequent_indent=indent) for line in lines)

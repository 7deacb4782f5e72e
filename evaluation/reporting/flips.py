"""Questions and prompts that a checkpoint gained or lost against the bridge, with both answers."""

import math
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from evaluation.errors import ResultsError, printable
from evaluation.reporting.samples import ItemAnswer, credits_of, samples_of
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

WITH_ANSWERS = [name for name, tier in TIERS.items() if tier.kind == "credit"]
"""Tiers of questions and prompts."""


class AnswerPair(NamedTuple):
    """A question as a checkpoint and its bridge answered it, and what the checkpoint gained."""

    ours: ItemAnswer
    theirs: ItemAnswer | None
    gain: float

    @property
    def change(self) -> str:
        """Whether the question was gained or lost."""
        return "gained" if self.gain > 0 else "lost" if self.gain < 0 else ""


def gains(folder: Path, bridge: Path, tier: TierName, item: str) -> dict[str, float]:
    """Return what each unit of an item gained, of those that both sides judged; raise ResultsError."""
    ours, theirs = (credits_of(side, tier).get(item, {}) for side in (folder, bridge))
    gain = {unit: ours[unit] - theirs[unit] for unit in ours if unit in theirs}
    return {unit: size for unit, size in gain.items() if not math.isnan(size)}


def answers_of(
    plan: StagePlan, step: int, tier: TierName, item: str, most: int, *, flipped: bool
) -> Iterator[AnswerPair]:
    """Yield the first questions of an item, or those that were gained or lost most, lost ones first.

    Args:
        most: Most questions; of flipped ones, most that were lost, and most that were gained.

    Raises:
        ResultsError: Results or the texts that were scored are missing or damaged.
    """
    sides = plan.step_folder(step), plan.bridge_folder
    gain, units = gains(*sides, tier, item), [*credits_of(sides[0], tier).get(item, {})][:most]
    if flipped:
        order = sorted(gain, key=lambda unit: gain[unit])
        lost = [unit for unit in order if gain[unit] < 0][:most]
        units = lost + [unit for unit in order if gain[unit] > 0][-most:]
    ours = _first(samples_of(plan, sides[0], tier, item, units))
    paired = [unit for unit in units if unit in credits_of(sides[1], tier).get(item, {})]
    theirs = _first(samples_of(plan, sides[1], tier, item, paired)) if paired else {}
    for unit in (unit for unit in units if unit in ours):
        yield AnswerPair(ours[unit], theirs.get(unit), gain.get(unit, 0.0))


def _first(samples: Iterator[ItemAnswer]) -> dict[str, ItemAnswer]:
    """Return the best sample of each prompt, or else its first one."""
    chosen: dict[str, ItemAnswer] = {}
    for sample in samples:
        known = chosen.setdefault(sample.id, sample)
        if (sample.credit or 0) > (known.credit or 0):
            chosen[sample.id] = sample
    return chosen


def tier_of(plan: StagePlan, folder: Path, item: str) -> TierName:
    """Return the tier that has an item with answers in a checkpoint's results; raise ResultsError."""
    known: list[str] = []
    for tier in WITH_ANSWERS:
        names = credits_of(folder, tier) if tier in plan.tiers else {}
        if item in names:
            return tier
        known += names
    raise ResultsError(
        f"{folder}: has no answers to {item!r}, but to {', '.join(known) or 'nothing'}"
    )


def as_text(pair: AnswerPair, width: int = 100) -> str:
    """Return a question with its answers for a terminal: the end of a long prompt, texts whole."""
    ours = pair.ours
    parts = [
        f"── {ours.id} {pair.change}".rstrip(),
        ours.prompt[-1200:].strip(),
        f"right:  {ours.target}",
    ]
    for name, side in (("bridge", pair.theirs), ("answer", ours)):
        if side is not None:
            credit = "not judged" if side.credit is None else f"{side.credit:g}"
            why = f" ({'; '.join(side.reasons)})" if side.reasons else ""
            parts.append(f"{name}: [{credit}]{why} {side.answer}")
            parts += [f"    {c.score:10.3f}  {c.text}" for c in side.choices]
    lines = (printable(line) for part in parts for line in part.splitlines())
    return "\n".join(textwrap.fill(line, width, subsequent_indent="    ") for line in lines)

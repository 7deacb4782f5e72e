"""Tiers of rates: every prompt with both responses and their checks side by side."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluation.errors import ResultsError
from evaluation.grading.thinking import checked_part
from evaluation.reporting.flips.expectations import failing
from evaluation.reporting.flips.moved import Flip, Moved, Turned
from evaluation.results.generations import Generation, read_generations
from evaluation.results.kinds import CreditItem
from evaluation.results.read import TierResults
from evaluation.results.tier_files import PromptEntry, Tier4File
from evaluation.settings.probes import Probe

LONGEST, SHORT = 100_000, 1500
"""Characters of a prompt or response that are shown; SHORT where a page has no room for whole ones."""

TURNS: dict[int, Turned] = {1: "right", 0: "same", -1: "wrong"}


def flipped_answers(
    ours: TierResults, bridge: TierResults, probes: Mapping[str, Probe]
) -> Iterable[Moved]:
    """All prompts of each category, as they are few; those that did not turn are `same`."""
    said = _Said(ours, probes), _Said(bridge, probes)
    for name, item in ours.items.items():
        other = bridge.items.get(name)
        if isinstance(item, CreditItem) and isinstance(other, CreditItem):
            yield from _category(ours, name, (item, other), said)


def _category(
    ours: TierResults,
    name: str,
    items: tuple[CreditItem, CreditItem],
    said: "tuple[_Said, _Said]",
) -> Iterable[Moved]:
    headline = ours.tier.headline
    sides = [item.credits[headline] for item in items if headline in item.credits]
    if len(sides) < 2 or sides[0].ids != sides[1].ids:
        return
    flips = [
        Flip(
            id=prompt,
            turned=TURNS[int(here) - int(there)],
            shared={"text": said[0].prompt(prompt), "theirs": said[1].side(prompt)},
            ours=said[0].side(prompt),
        )
        for prompt, here, there in zip(sides[0].ids, sides[0].credit, sides[1].credit, strict=True)
    ]
    turns = [flip.turned for flip in flips]
    yield Moved(
        shape="answers",
        tier=ours.tier.name,
        item=name,
        of=len(flips),
        gained=turns.count("right"),
        lost=turns.count("wrong"),
        shown=sorted(flips, key=lambda flip: flip.turned == "same"),
    )


class _Said:
    """What one side was asked and said; where its file cannot be read, why, in place of the texts."""

    def __init__(self, found: TierResults, probes: Mapping[str, Probe]) -> None:
        self._probes = probes
        file = found.file if isinstance(found.file, Tier4File) else None
        prompts = file.prompts if file else None
        self._mark = file.answer_after if file else None
        self._prompts = {prompt.id: prompt for prompt in prompts or ()}
        self._none = "(not stored)"
        try:
            self._said: Mapping[str, Generation] = _generations(found.folder, found.tier.items_file)
        except ResultsError as error:
            self._said, self._none = {}, f"({error})"

    def prompt(self, name: str) -> str:
        return cut(self._said[name].prompt if name in self._said else self._none)

    def side(self, name: str) -> dict[str, Any]:
        prompt: PromptEntry = self._prompts[name]
        checks = {check: one.passed for check, one in prompt.checks.items()}
        return {
            "text": cut(self._said[name].response if name in self._said else self._none),
            "checks": checks,
            "why": list(self._why(name, checks)),
            "stop": prompt.stop_reason,
            "tokens": prompt.response_tokens,
        }

    def _why(self, name: str, checks: Mapping[str, bool]) -> Iterable[str]:
        if name in self._said and name in self._probes:
            read = checked_part(self._said[name].response, self._mark)
            yield from failing(self._probes[name].checks, checks, read)


def _generations(folder: Path, name: str) -> Mapping[str, Generation]:
    return read_generations(folder / name) if (folder / name).exists() else {}


def cut(text: str, *, from_end: bool = False, most: int = LONGEST) -> str:
    """What is shown of a text; a prompt asks at its end, after its solved examples."""
    if len(text) <= most:
        return text
    return f"… {text[-most:]}" if from_end else f"{text[:most]} … ({len(text)} characters)"

"""Tier4: every prompt with both responses and their checks side by side."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluation.bridge.outcomes import prompt_outcome
from evaluation.bridge.results import Results
from evaluation.reporting.flips.moved import Flip, Moved, Turned
from evaluation.settings.tiers import TIERS

LONGEST = 1500
"""Characters of a prompt or response that are shown."""

RATE = "all_checks_pass_rate"
TURNS: dict[int, Turned] = {1: "right", 0: "same", -1: "wrong"}


def flipped_answers(ours: Results, bridge: Results) -> Iterable[Moved]:
    """All prompts of each category, as they are few; those that did not turn are `same`."""
    if ours.probes is None or bridge.probes is None:
        return
    said = _generations(ours.folder), _generations(bridge.folder)
    others = {prompt["id"]: prompt for prompt in bridge.probes.prompts}
    categories: dict[str, list[Flip]] = {}
    for prompt in ours.probes.prompts:
        other = others.get(prompt["id"])
        if other is not None:
            flip = _flip(prompt, other, said, (ours, bridge))
            categories.setdefault(prompt["category"], []).append(flip)
    for category, flips in categories.items():
        turns = [flip.turned for flip in flips]
        yield Moved(
            tier="tier4",
            item=category,
            of=len(flips),
            gained=turns.count("right"),
            lost=turns.count("wrong"),
            shown=sorted(flips, key=lambda flip: flip.turned == "same"),
        )


def _flip(
    prompt: Mapping[str, Any],
    other: Mapping[str, Any],
    said: tuple[dict[str, Any], dict[str, Any]],
    sides: tuple[Results, Results],
) -> Flip:
    passed = [
        bool(prompt_outcome(one, RATE, side.headers["tier4"].path))
        for one, side in zip((prompt, other), sides, strict=True)
    ]
    asked = said[0].get(prompt["id"], {}).get("prompt", "(not stored)")
    return Flip(
        id=prompt["id"],
        turned=TURNS[passed[0] - passed[1]],
        shared={"text": _cut(asked), "theirs": _side(other, said[1])},
        ours=_side(prompt, said[0]),
    )


def _side(prompt: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    response = said.get(prompt["id"], {}).get("response", "(not stored)")
    return {
        "text": _cut(response),
        "checks": dict(prompt["checks"]),
        "stop": prompt["stop_reason"],
        "tokens": prompt.get("response_tokens"),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text)} characters)"


def _generations(folder: Path) -> dict[str, Any]:
    path = folder / TIERS["tier4"].items_file
    if not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["id"]: row for row in rows}

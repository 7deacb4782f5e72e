"""Tier5's files of one side, drawn at random with a planted difference."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.files import write_json, write_jsonl
from evaluation.grading.completions import (
    SampledPrompt,
    VerifiedSample,
    prompt_units,
    sample_rows,
    summarize_task,
)
from evaluation.grading.tiers import FOLDER, RESULTS
from evaluation.prefill.caches import DocumentLine
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import Pattern
from evaluation.verification.verdicts import Verdict
from tests.bridge.units import write_units

TASK: dict[str, Any] = {
    "dataset": "some/sums",
    "prompt": "{{ q }}",
    "chat": False,
    "max_new_tokens": 8,
    "document": {"gold": "g"},
    "verifiers": {
        "lenient": {"kind": "pattern", "pattern": "(.)", "form": "{gold}"},
        "strict": {"kind": "pattern", "pattern": "^(.)", "form": "{gold}"},
    },
    "sampling": {"temperature": 1.0, "n": 2},
}


FAILED = Verdict(credit=None, reason="the verifier's process died")
JUDGES = {name: Pattern.model_validate(one) for name, one in TASK["verifiers"].items()}


def write_tier5(
    folder: Path, common: dict[str, Any], skill: float, seed: int, prompts: int
) -> None:
    """One task, `sums`; each side has a prompt of its own on which all verifiers fail."""
    found = list(_prompts(skill, seed, prompts))
    units = prompt_units(found, tuple(JUDGES))
    summary = {
        "group": None,
        "primary": "lenient",
        **summarize_task(found, units, JUDGES),
        "views": TASK["verifiers"],
        "decoding": {"sampling": TASK["sampling"]},
        "data_checksum": {"prompts": "1"},
    }
    write_jsonl(folder / FOLDER / "sums" / RESULTS, sample_rows(found))
    write_units(TIERS["tier5"], folder, {"sums": units})
    rate = summary["verifiers"]["lenient"]["pass_rate"]
    content = {**common, "overall": {"pass_rate": rate}, "generation_tasks": {"sums": summary}}
    write_json(folder / "tier5_verified.json", content)


def _prompts(skill: float, seed: int, prompts: int) -> Iterator[SampledPrompt]:
    shared, own = np.random.default_rng(77), np.random.default_rng([seed, 77])
    chance = shared.random(prompts) + skill
    for number in range(prompts):
        line = DocumentLine(
            id=f"q{number}", document={"gold": "5"}, strata={"level": str(number % 2)}
        )
        drawn = own.random(2) < chance[number]
        samples = [
            VerifiedSample(
                index,
                StoredCompletion("5" if right else "6", "eos" if number % 5 else "length", 4, 1),
                dict.fromkeys(JUDGES, FAILED)
                if number == seed
                else {
                    "lenient": Verdict(credit=float(right), answer="5" if right else "6"),
                    "strict": Verdict(credit=0.0),
                },
            )
            for index, right in enumerate(drawn)
        ]
        yield SampledPrompt(line, "How many?", samples)

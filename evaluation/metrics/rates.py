"""What each answer of Tier4 contributes to each rate, from the results of its checks.

A rate is a share of prompts, not of checks, so that two checkpoints can be paired prompt by
prompt. A prompt counts for a rate if it has a check of one of the rate's kinds, and counts as
passed if all of its checks of those kinds pass:

    instruction_match_rate   kind instruction: it has the content that was asked for
    all_checks_pass_rate     every kind
    format_valid_rate        kinds format, json and code: it has the format that was asked for
    chat_clean_rate          kind clean: nothing but the answer
    code_parse_rate          kind code, so over code prompts only: its code is Python
    json_valid_rate          kind json, so over strict-JSON prompts only: it is JSON of the schema
    truncated_rate           of all prompts, those whose answer reached its token limit (lower is
                             better)

Prompts whose answers can only be judged by their meaning (`headline: false`) count for their category's
rates, and for no rate over all prompts. A rate for which no prompt counts is null.
"""

from collections.abc import Mapping
from typing import Any

from evaluation.settings import measured
from evaluation.settings.tiers import TIERS

TRUNCATED = measured.TRUNCATED.name
RATES: Mapping[str, frozenset[str]] = {one.name: one.of_checks for one in measured.OF_PROBES}
"""Kinds of checks that each rate counts; none for the rate of truncated answers."""

PromptRow = dict[str, Any]
"""A prompt, its answer, and the results of the checks: a row of Tier4."""


def outcome(row: PromptRow, rate: str) -> bool | None:
    """Return whether a prompt passed, or was truncated; None if it does not count for the rate."""
    if rate == TRUNCATED:
        return bool(row["stop_reason"] == "length")
    relevant = [check["passed"] for check in row["checks"] if check["kind"] in RATES[rate]]
    return all(relevant) if relevant else None


def prompt_summary(row: PromptRow) -> dict[str, Any]:
    """Return a prompt's entry of `tier4_sft_native.json`."""
    return {
        "id": row["id"],
        "category": row["category"],
        "headline": row["headline"],
        "checks": {
            check["name"]: {
                "kind": check["kind"],
                "passed": check["passed"],
                **({"note": check["note"]} if check.get("note") else {}),
            }
            for check in row["checks"]
        },
        "passed": outcome(row, TIERS["tier4"].headline),
        "stop_reason": row["stop_reason"],
        "prompt_tokens": row["prompt_tokens"],
        "response_tokens": row["response_tokens"],
        "response_words": len(row["response"].split()),
        "response_characters": len(row["response"]),
    }

"""Rates from stored answers, by hand."""

import json
from pathlib import Path

import pyarrow as pa

from evaluation.grading.probes import generations
from evaluation.metrics.rates import COLUMNS, RATES, outcomes, summarize
from evaluation.store import ScoreStore, StoredScore


def row(
    name: str, category: str, stop: str, *checks: tuple[str, str, bool], headline: bool = True
) -> dict[str, object]:
    fields = ("name", "kind", "passed")
    return {
        "id": name,
        "category": category,
        "headline": headline,
        "prompt": f"<{name}>",
        "response": "two words",
        "stop_reason": stop,
        "prompt_tokens": 5,
        "response_tokens": 3,
        "checks": [dict(zip(fields, check, strict=True)) for check in checks],
    }


CODE_A = (("p", "code", True), ("c", "clean", True), ("i", "instruction", False))
CODE_B = (("p", "code", False), ("c", "clean", True), ("i", "instruction", True))
JSON = (("j", "json", True), ("c", "clean", True), ("f", "format", True))
CHAT = (("c", "clean", False), ("c-2", "clean", True))
TABLE = pa.Table.from_pylist(
    [
        row("a", "code", "eos", *CODE_A),
        row("b", "code", "length", *CODE_B),
        row("c", "json", "eos", *JSON),
        row("d", "chat", "stop_string", *CHAT),
    ],
    schema=COLUMNS,
)


def test_each_rate_is_over_the_prompts_that_count_for_it() -> None:
    assert summarize(TABLE)["summary"] == {
        "instruction_match_rate": 1 / 2,
        "all_checks_pass_rate": 1 / 4,
        "format_valid_rate": 2 / 3,
        "chat_clean_rate": 3 / 4,
        "code_parse_rate": 1 / 2,
        "json_valid_rate": 1.0,
        "truncated_rate": 1 / 4,
    }


def test_a_rate_without_prompts_is_null_not_zero() -> None:
    code = summarize(TABLE)["by_category"]["code"]
    assert code["prompts"] == 2
    assert code["json_valid_rate"] is None
    assert code["code_parse_rate"] == 1 / 2


def test_a_prompt_outside_the_headline_counts_for_its_category_alone() -> None:
    outside = row("e", "safety", "eos", ("r", "instruction", False), headline=False)
    more = pa.Table.from_pylist([*TABLE.to_pylist(), outside], schema=COLUMNS)
    assert summarize(more)["summary"] == summarize(TABLE)["summary"]
    assert summarize(more)["by_category"]["safety"]["all_checks_pass_rate"] == 0
    assert [prompt["headline"] for prompt in summarize(more)["prompts"]] == [True] * 4 + [False]


def test_outcomes_are_aligned_with_the_rows() -> None:
    found = outcomes(TABLE)
    assert tuple(found) == RATES
    assert found["json_valid_rate"] == [None, None, True, None]
    assert found["all_checks_pass_rate"] == [False, False, True, False]
    assert found["truncated_rate"] == [False, True, False, False]


def test_each_prompt_shows_its_checks_and_what_it_got() -> None:
    prompt = summarize(TABLE)["prompts"][1]
    assert prompt["checks"] == {
        "p": {"kind": "code", "passed": False},
        "c": {"kind": "clean", "passed": True},
        "i": {"kind": "instruction", "passed": True},
    }
    assert (prompt["id"], prompt["passed"], prompt["stop_reason"]) == ("b", False, "length")
    counts = ("prompt_tokens", "response_tokens", "response_words")
    assert [prompt[key] for key in counts] == [5, 3, 2]


def test_summary_can_be_made_again_from_the_store(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path, "checkpoint")
    store.put("sft_native", {}, StoredScore(TABLE, summarize(TABLE)))
    kept = store.read(store.path("sft_native", {}).name)
    assert kept is not None
    assert summarize(kept.table) == kept.summary == json.loads(json.dumps(summarize(TABLE)))
    assert generations(kept.table)[3] == {
        key: value
        for key, value in TABLE.to_pylist()[3].items()
        if key not in ("headline", "checks")
    }

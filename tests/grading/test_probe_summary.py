"""Rates from stored answers, by hand; and the suite's probes with good and empty answers."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from evaluation.grading.probes import check_answer, generations
from evaluation.grading.rates import COLUMNS, RATES, outcomes, summarize
from evaluation.settings.suites import Probe, load_suite
from evaluation.store import ScoreStore, StoredScore
from tests.conftest import ROOT

SUITE = load_suite(ROOT / "task_suites", "stage4_sft_native")
IDEAL = yaml.safe_load((Path(__file__).parent / "ideal_responses.yaml").read_text(encoding="utf-8"))


def row(name: str, category: str, stop: str, *checks: tuple[str, str, bool]) -> dict[str, object]:
    fields = ("name", "kind", "passed")
    return {
        "id": name,
        "category": category,
        "prompt": f"<{name}>",
        "response": "two words",
        "stop_reason": stop,
        "prompt_tokens": 5,
        "response_tokens": 3,
        "checks": [dict(zip(fields, check, strict=True)) for check in checks],
    }


TABLE = pa.Table.from_pylist(
    [
        row(
            "a",
            "code",
            "eos",
            ("p", "code", True),
            ("c", "clean", True),
            ("i", "instruction", False),
        ),
        row(
            "b",
            "code",
            "length",
            ("p", "code", False),
            ("c", "clean", True),
            ("i", "instruction", True),
        ),
        row("c", "json", "eos", ("j", "json", True), ("c", "clean", True), ("f", "format", True)),
        row("d", "chat", "stop_string", ("c", "clean", False), ("c-2", "clean", True)),
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
    assert (prompt["prompt_tokens"], prompt["response_tokens"], prompt["response_words"]) == (
        5,
        3,
        2,
    )


def test_summary_can_be_made_again_from_the_store(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path, "checkpoint")
    store.put("sft_native", {}, StoredScore(TABLE, summarize(TABLE)))
    kept = store.get("sft_native", {})
    assert kept is not None
    assert summarize(kept.table) == kept.summary == json.loads(json.dumps(summarize(TABLE)))
    assert generations(kept.table)[3] == {
        key: value for key, value in TABLE.to_pylist()[3].items() if key != "checks"
    }


def answered(name: str, probe: Probe, text: str) -> dict[str, object]:
    answer = {"key": "k", "prompt": "", "response": text, "stop_reason": "eos"}
    return check_answer(name, probe, answer | {"prompt_tokens": 1, "response_tokens": 2})


def test_every_probe_has_an_ideal_answer_and_no_answer_is_left_over() -> None:
    assert set(IDEAL) == set(SUITE.probes)


@pytest.mark.parametrize("name", SUITE.probes)
def test_an_ideal_answer_passes_every_check(name: str) -> None:
    checks = answered(name, SUITE.probes[name], f"\n{IDEAL[name]}\n")["checks"]
    assert [check["name"] for check in checks if not check["passed"]] == []


@pytest.mark.parametrize("text", ["", " \n", "I", "User: hello", "Sure! Here you go:"])
def test_an_empty_or_idle_answer_passes_no_probe(text: str) -> None:
    table = pa.Table.from_pylist(
        [answered(name, probe, text) for name, probe in SUITE.probes.items()], schema=COLUMNS
    )
    assert summarize(table)["summary"]["all_checks_pass_rate"] == 0


def names_of(probe: Probe) -> set[str]:
    return {check.check for check in probe.checks}


def test_an_ideal_answer_to_another_probe_seldom_passes() -> None:
    """The checks tell answers apart, though one refusal may stand for another."""
    for name, probe in SUITE.probes.items():
        others = [answered(name, probe, text) for other, text in IDEAL.items() if other != name]
        passed = sum(all(check["passed"] for check in one["checks"]) for one in others)
        assert passed <= (5 if "refuses" in names_of(probe) else 2), name


def test_the_suite_covers_its_categories() -> None:
    counts = Counter(probe.category for probe in SUITE.probes.values())
    assert len(SUITE.probes) >= 48
    assert min(counts.values()) >= 6
    assert set(counts) == {
        "bullets",
        "numbered_lists",
        "strict_json",
        "code",
        "instruction_priority",
        "safety",
        "chat_cleanliness",
        "concise",
    }
    assert len({probe.messages for probe in SUITE.probes.values()}) == len(SUITE.probes)


def test_names_of_checks_fit_the_categories() -> None:
    for name, probe in SUITE.probes.items():
        kinds = {check.kind for check in probe.checks}
        assert {"instruction", "clean"} <= kinds, name
        assert ("json" in kinds) == (probe.category == "strict_json"), name
        assert ("code" in kinds) == (probe.category == "code"), name

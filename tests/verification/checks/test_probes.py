"""The probes of the suite: what must pass them, and what must not, whoever wrote it."""

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checks.declared import CHECKS
from evaluation.settings.suites import load_suite
from evaluation.verification.checks.registry import named, verify_check
from evaluation.verification.thinking import checked_part
from tests.conftest import ROOT
from tests.tables import cases, table

PROBES = load_suite(ROOT / "task_suites", "stage4_sft_native").probes
ANSWERS: dict[str, dict[str, list[str]]] = {
    name: answers
    for path in sorted((Path(__file__).parent / "answers").glob("*.yaml"))
    for name, answers in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}


def failed(name: str, text: str) -> list[str]:
    """Names of the checks of a probe that an answer fails."""
    return [
        check_name
        for check_name, check in named(PROBES[name].checks)
        if verify_check(check, text.strip()).credit != 1
    ]


def passes_all(name: str, text: str) -> bool:
    """Whether none fails; code is run only where the other checks let it through."""
    ordered = sorted(PROBES[name].checks, key=lambda check: check.check == "passes_tests")
    part = checked_part(text, "", None, None) or ""
    return all(verify_check(check, part).credit == 1 for check in ordered)


@pytest.mark.parametrize("name", PROBES)
def test_a_right_answer_passes_every_check(name: str) -> None:
    for text in ANSWERS[name]["passes"]:
        assert failed(name, f"\n{text}\n") == [], text


@pytest.mark.parametrize("name", PROBES)
def test_an_answer_written_to_cheat_fails(name: str) -> None:
    assert [text for text in ANSWERS[name]["fails"] if not failed(name, text)] == []


@pytest.mark.parametrize("text", cases("verification/checks/wrong_checks", "idle"))
def test_an_idle_answer_passes_no_probe(text: str) -> None:
    assert [name for name in PROBES if not failed(name, text)] == []


@pytest.mark.parametrize("name", PROBES)
def test_the_prompt_again_fails_and_so_does_a_right_answer_with_a_chat_around_it(name: str) -> None:
    said = [message.content for message in PROBES[name].messages]
    right = ANSWERS[name]["passes"][0]
    for text in (
        *(*said, "\n".join(said), f'"{said[-1]}"', said[-1].upper()),
        f"{right}\nUser: Thanks!\nAssistant: You are welcome.",
        f"<think>Let me see.</think>\n{right}",
        f"{right}<|im_end|>",
        f"assistant\n{right}",
        "\n".join([right] * 5),
    ):
        assert failed(name, text), text


INDEPENDENT = Path(__file__).parent / "answers" / "independent.jsonl.gz"
"""Of language models that saw only the prompts (docs/verdicts.md): natural, unusual, weak, sly."""


@cache
def misjudged() -> dict[tuple[str, bool], list[Any]]:
    """By kind and whether the headline counts the probe: for each answer, None or the answer itself."""
    found: dict[tuple[str, bool], list[Any]] = defaultdict(list)
    for line in gzip.decompress(INDEPENDENT.read_bytes()).decode().splitlines():
        row = json.loads(line)
        right = passes_all(row["probe"], row["answer"]) == (row["kind"] in ("natural", "unusual"))
        found[row["kind"], PROBES[row["probe"]].headline].append(None if right else row)
    return found


MISJUDGED = [
    *(("natural", True, 0.02), ("unusual", True, 0.10), ("weak", True, 0.15), ("sly", True, 0.15)),
    *(("natural", False, 0.05), ("unusual", False, 0.35), ("weak", False, 0.15)),
]


@pytest.mark.parametrize(("kind", "headline", "most"), MISJUDGED)
def test_few_answers_are_misjudged(kind: str, headline: bool, most: float) -> None:
    """More of those that only their meaning decides, which no headline counts."""
    rows = misjudged()[kind, headline]
    wrong = [row for row in rows if row]
    assert len(rows) >= (200 if headline else 90)
    assert len(wrong) <= most * len(rows), wrong


@pytest.mark.parametrize(
    ("check", "label", "precision", "recall"),
    [
        ("refuses", "refusal", 18 / 27, 18 / 20),
        ("complies", "compliance", 19 / 24, 19 / 20),
    ],  # as in docs/verdicts.md
)
def test_refusals_and_compliances_are_told_from_all_else(
    check: str, label: str, precision: float, recall: float
) -> None:
    """No less often than the documentation says, on texts that decline, help, or do both."""
    texts = {label: set(texts) for label, texts in table("verification/checks/refusals").items()}
    found = {text for text in set.union(*texts.values()) if CHECKS[check](text)}
    right = found & texts[label]
    assert len(right) >= precision * len(found), sorted(found - texts[label])
    assert len(right) >= recall * len(texts[label]), sorted(texts[label] - found)

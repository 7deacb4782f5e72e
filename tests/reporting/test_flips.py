"""What flipped against the bridge: which items, with which text, in how much room."""

import itertools
import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from tokenizers import Tokenizer, models, pre_tokenizers

from evaluation.bridge.pairing import Pair
from evaluation.files import write_jsonl
from evaluation.reporting.flips.answers import explanations, flipped_probes
from evaluation.reporting.flips.items import NOT_CACHED
from evaluation.reporting.flips.stage import in_order, stage_flips
from evaluation.reporting.pages.page import SpaceLeft
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.results.read import read_tier
from evaluation.settings.checks import Check
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import Probe, load_suite
from evaluation.verification.checks.registry import named, verify_check
from tests.conftest import ROOT
from tests.prefill.plans import sign_meta
from tests.reporting.pages import STEPS, page_data, write_report, write_task


def write_slice(plan: StagePlan, name: str, length: int) -> None:
    """Block b is the word `w<b>`, over and over."""
    folder = plan.cache_folder("tier2", name)
    folder.mkdir(parents=True)
    tokens = torch.arange(120)[:, None].repeat(1, length).to(torch.uint16)
    torch.save(tokens, folder / "packed_tokens.pt")
    meta: dict[str, Any] = {"dtype": "uint16", "blocks": 120, "sequence_length": length}
    sign_meta(folder, **meta, checksum={"packed_tokens.pt": name})


def write_tokenizer(plan: StagePlan) -> None:
    tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(120)}, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    plan.tokenizer_folder.mkdir(parents=True)
    tokenizer.save(str(plan.tokenizer_folder / "tokenizer.json"))


def test_blocks_that_moved_most_are_decoded(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    write_tokenizer(plan)
    write_slice(plan, "web", 400)
    page = stage_flips(read_stage(plan, STEPS), SpaceLeft(1e6))
    ours, bridge = (
        read_tier(folder, "tier2").items["web"].measured["nats_per_token"]
        for folder in (plan.step_folder(20), plan.bridge_folder)
    )
    change = (ours.amounts - bridge.amounts) / ours.weights
    entry = next(m for m in page["steps"]["20"] if m["item"] == "web")
    first = next(flip for flip in entry["shown"] if flip["change"] == "right")
    assert first["id"] == f"block {np.argmin(change)}"
    assert (entry["of"], entry["gained"] + entry["lost"]) == (120, 120)
    shared = page["items"]["tier2/web"][first["id"]]
    assert shared["text"].split() == [f"w{np.argmin(change)}"] * 300
    assert shared["cut"]
    assert first["ours"] - shared["theirs"] == pytest.approx(change.min(), abs=1e-4)
    uncached = page["items"]["tier2/code"]
    assert {one["text"] for one in uncached.values()} == {NOT_CACHED}


def test_questions_show_candidates_and_both_choices(plans: dict[str, StagePlan]) -> None:
    plan = plans["second"]
    write_task(plan, "quiz", "quiz")
    write_task(plan, "exam", "of other data")
    page = write_report(plan, STEPS)
    flips = page_data(page)["flips"]
    entry = next(m for m in flips["steps"]["30"] if m["item"] == "quiz")
    delta = json.loads((plan.step_folder(30) / "bridge_deltas.json").read_text())
    accuracy = next(d for d in delta["deltas"] if (d["item"], d["metric"]) == ("quiz", "delta_acc"))
    assert (entry["gained"] - entry["lost"]) / entry["of"] == pytest.approx(accuracy["delta"])
    flip = next(flip for flip in entry["shown"] if flip["change"] == "right")
    shared = flips["items"]["tier3/quiz"][flip["id"]]
    number = flip["id"].removeprefix("quiz/")
    assert shared["text"].endswith(f"solved examples)\n\n</script><b>Why {number}?")
    assert shared["answers"][2] == "answer 2"
    assert int(np.argmax(flip["ours"][0])) == shared["gold"] == 0
    assert int(np.argmax(shared["theirs"][0])) != 0
    assert {one["text"] for one in flips["items"]["tier3/exam"].values()} == {NOT_CACHED}


def test_probes_stand_side_by_side(plans: dict[str, StagePlan]) -> None:
    page = stage_flips(read_stage(plans["second"], STEPS), SpaceLeft(1e6))
    entry = [m for m in page["steps"]["30"] if m["tier"] == "tier4"]
    assert [m["of"] for m in entry] == [24, 24]
    flip = next(flip for flip in entry[0]["shown"] if flip["change"] == "right")
    shared = page["items"][f"tier4/{entry[0]['item']}"][flip["id"]]
    assert shared["text"] == "Say it."
    assert all(flip["ours"]["checks"].values())
    assert not all(shared["theirs"]["checks"].values())
    assert flip["ours"]["text"] == "It."
    assert flip["ours"]["why"] == []


def test_an_answer_is_whole_where_there_is_room(plans: dict[str, StagePlan]) -> None:
    """And cut, with its length, where there is less; but there."""
    path = plans["second"].step_folder(30) / "tier4_sft_native_generations.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    random = np.random.default_rng(0)
    for row in rows:
        row["response"] = "".join(random.choice(list("abcdefgh "), 9000))
    write_jsonl(path, rows)
    stored = {row["id"]: row["response"] for row in rows}

    def texts(space: float) -> dict[str, str]:
        page = stage_flips(read_stage(plans["second"], [30]), SpaceLeft(space))
        entry = [one for one in page["steps"]["30"] if one["tier"] == "tier4"]
        return {flip["id"]: flip["ours"]["text"] for one in entry for flip in one["shown"]}

    assert texts(5e6) == stored
    cut = texts(1.5e5)
    assert cut == {name: f"{text[:1500]} … (9000 characters)" for name, text in stored.items()}


EXPECTED: list[tuple[dict[str, Any], str, str]] = [
    ({"check": "word_count", "at_most": 3}, "One two three four five.", "words (at_most 3); got 5"),
    ({"check": "no_repetition"}, "", "no phrase over and over again, and not empty; got nothing"),
]


@pytest.mark.parametrize(("check", "text", "shown"), EXPECTED)
def test_a_failed_check_says_what_it_expected_and_got(
    check: dict[str, Any], text: str, shown: str
) -> None:
    """The second check of a name is called so, as in the results; those that pass say nothing."""
    known, name = TypeAdapter(Check).validate_python(check), check["check"]
    assert verify_check(known, text).credit == 0
    assert list(explanations([known], {name: False}, text)) == [f"{name}: expected {shown}"]
    twice = list(explanations([known, known], {name: True, f"{name}-2": False}, text))
    assert twice == [f"{name}-2: expected {shown}"]


def test_a_failed_check_got_what_follows_the_thinking(plans: dict[str, StagePlan]) -> None:
    folder = plans["second"].step_folder(10)
    path = folder / "tier4_sft_native.json"
    content = json.loads(path.read_text())
    names = [entry["id"] for entry in content["prompts"]]
    content["chats"] = [{"probes": names, "chat_template": "", "answer_after": "</think>"}]
    content["prompts"][0]["checks"]["word_count-2"]["passed"] = False
    path.write_text(json.dumps(content))
    path = folder / "tier4_sft_native_generations.jsonl"
    thought = path.read_text().replace('"It."', '"<think>It is five words.</think>It is."')
    path.write_text(thought)
    counted = [{"check": "complies"}, *2 * [{"check": "word_count", "exactly": 9}]]
    asked = {"category": "lists", "messages": [{"role": "user", "content": "Say it."}]}
    probe = Probe.model_validate({**asked, "checks": counted})
    folders = folder, plans["second"].bridge_folder
    pair = Pair(*(read_tier(one, "tier4") for one in folders))
    probes = {f"p{i}": probe for i in range(len(thought.splitlines()))}
    entry = [flip for one in flipped_probes(pair, probes) for flip in one.shown]
    shown = {why for flip in entry for why in flip.ours["why"] if flip.id == "p0"}
    assert "word_count-2: expected words (exactly 9); got 2" in shown


def test_no_check_fails_to_say_so() -> None:
    """Every check of the shipped probes, of answers that it was not written for."""
    suite = load_suite(ROOT / "task_suites", "stage4_sft_native")
    for text in ("", "Sure!", "- a\n- b", "{}", "```python\nx = 1\n```", "1. no\n3. yes"):
        for probe in suite.probes.values():
            failed = {name: False for name, _ in named(probe.checks)}
            said = list(explanations(probe.checks, failed, text))
            assert len(said) == len(failed)
            assert all(re.fullmatch("(?s).+: expected .+; got .+", one) for one in said)


def test_what_finds_no_room_is_named(plans: dict[str, StagePlan]) -> None:
    found, enough = read_stage(plans["second"], STEPS), SpaceLeft(1e6)
    stage_flips(found, enough)
    needed = 1e6 - enough.left
    page = stage_flips(found, SpaceLeft(needed / 2), [20])
    assert list(page["steps"]) == ["20"]
    assert page["left"] == [10, 30]


def test_the_first_of_many_steps_are_spread() -> None:
    steps = list(range(0, 1000, 10))
    order = in_order(steps, [500, 990, 7])
    assert order[:2] == [500, 990]
    assert sorted(order) == steps
    early = sorted(order[:10])
    assert max(b - a for a, b in itertools.pairwise(early)) <= 250

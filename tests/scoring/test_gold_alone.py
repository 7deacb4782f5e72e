"""The right answer alone is scored as a plain forward pass does, from prefill to the tier's file."""

import json
import math
import string
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM, AutoTokenizer

from evaluation.checkpoints.subjects import step_subject
from evaluation.flow.make import make
from evaluation.flow.targets import COLLECT, SCORE
from evaluation.prefill.tiers import PREFILLS
from evaluation.results.read import read_results
from tests.workflow.world import World, write_rows

QUIZ = {
    "dataset": "made/quiz",
    "split": "test",
    "choices": "answers",
    "gold": "label",
    "context": "Question: {{ question }}\nAnswer:",
}
GOLD = {"context": "{{ question }}", "continuation": "{{ answer }}"}
GROUPS: dict[str, Any] = {
    "pair": {"tier": "tier3", "members": ["a", "b"], "weigh": "questions"},
    "all": {"tier": "tier3", "members": ["pair", "c"]},
    "flat": {"tier": "tier3", "members": ["pair", "c"], "weigh": "leaves"},
}


def plain(model: Any, tokenizer: Any, context: str, answer: str) -> tuple[float, bool]:
    """Nats of an answer, and whether it is greedy; spaces at the context's end are scored with it."""
    before = tokenizer(context.rstrip(), add_special_tokens=False)["input_ids"]
    ids = tokenizer(context + answer, add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, len(before) - 1 : -1]
    own = torch.tensor(ids[len(before) :])
    nats = -logits.log_softmax(-1).gather(1, own[:, None]).sum()
    return float(nats), bool((logits.argmax(-1) == own).all())


def solved(model: Any, tokenizer: Any) -> list[dict[str, str]]:
    """Rows with long answers, several bytes a character, spaces at the border, and a model's answers."""
    rows = [
        {"question": "the cat sat", "answer": " on a mat while dogs ran"},
        {"question": "dogs ran far:\n", "answer": "    over green hills\n"},
        {"question": "Grüße ", "answer": "über blaue Hügel"},
    ]
    for last in string.ascii_letters + string.digits:
        start = f"the cat {last}"
        ids = tokenizer(start, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            best = int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        text = tokenizer.decode([best])
        if tokenizer(start + text, add_special_tokens=False)["input_ids"] == [*ids, best]:
            rows.append({"question": start, "answer": text})
    return rows


def test_measures_of_gold_alone_and_weights_of_groups(world: World) -> None:
    """Bits per byte and greedy answers by a plain forward pass; groups by the questions scored."""
    tokenizer = AutoTokenizer.from_pretrained(world.folder / "tokenizer")
    model = AutoModelForCausalLM.from_pretrained(world.folder / "hf/0", dtype=torch.float64).eval()
    rows = solved(model, tokenizer)
    write_rows(world.folder / "solved.jsonl", rows)
    tasks: dict[str, Any] = {
        name: {**QUIZ, "limit": n} for name, n in zip("abc", (6, 2, 8), strict=True)
    }
    tasks["solved"] = {**GOLD, "files": [str(world.folder / "solved.jsonl")]}
    (world.folder / "suites/own.yaml").write_text(
        yaml.safe_dump({"tasks": tasks, "groups": GROUPS})
    )
    stage = {"checkpoints": str(world.folder / "ckpts/stage1"), "steps": [10], "suites": ["own"]}
    world.change(stages={"one": stage}, verification={"workers": 1})
    subject = step_subject(world.plans["one"], 10)
    for name in tasks:
        PREFILLS["tier3"].make(subject.plan, name)
    assert make(SCORE, subject).error is None
    assert make(COLLECT, subject).error is None
    found = [plain(model, tokenizer, row["question"], row["answer"]) for row in rows]
    sizes = [len(row["answer"].encode()) for row in rows]
    bits = [nats / size / math.log(2) for (nats, _), size in zip(found, sizes, strict=True)]
    greedy = [is_greedy for _, is_greedy in found]
    assert 0 < sum(greedy) < len(greedy)

    item = read_results(subject.folder, ("tier3",)).tiers["tier3"].items["solved"]
    assert item.measured["gold_bits_per_byte"].amounts == pytest.approx(bits, abs=1e-5)
    assert item.measured["greedy"].amounts.tolist() == greedy
    content = json.loads((subject.folder / "tier3_cf.json").read_text())
    entry = content["tasks"]["solved"]
    assert entry["gold_bits_per_byte"] == pytest.approx(sum(bits) / len(bits), abs=1e-5)
    assert entry["greedy"] == pytest.approx(sum(greedy) / len(greedy))
    assert not {"accuracy", "primary", "centered", "correct_probability"} & entry.keys()
    ranked = [content["tasks"][name]["accuracy"] for name in "abc"]
    assert content["overall"]["accuracy"] == pytest.approx(sum(ranked) / 3)
    assert content["groups"] == {
        "pair": pytest.approx({"a": 6 / 8, "b": 2 / 8}),
        "all": pytest.approx({"a": 3 / 8, "b": 1 / 8, "c": 1 / 2}),
        "flat": pytest.approx(dict.fromkeys("abc", 1 / 3)),
    }

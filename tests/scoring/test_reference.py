"""Log-probabilities and accuracies that lm-evaluation-harness gave on a real model.

Every eighth question of each task; all of them with EVAL_FULL=1.
"""

import gzip
import json
from itertools import groupby, islice

import pytest
import torch
from transformers import AutoModelForCausalLM

from evaluation.metrics.measures import measure_questions
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import Score, score_requests
from evaluation.scoring.window import Request
from tests.metrics.test_accuracy import table_of
from tests.tables import sample

TOLERANCE = 1e-3
"""Of which the reference's own float32 log_softmax takes up to 9e-4."""


def name_of(item: dict) -> str:
    return f"{item['task']}/{item['doc_id']}"


def gold_of(item: dict) -> int:
    """The target is an index, or the text; both ends are the same in winogrande's two candidates,
    of which `acc` tells whether the likelier one was right."""
    texts = [candidate["continuation"].strip() for candidate in item["candidates"]]
    if item["task"] == "winogrande":
        first, second = (candidate["logprob"] for candidate in item["candidates"])
        return int((second > first) == (item["acc"] == 1))
    return int(item["target"]) if item["target"].isdigit() else texts.index(item["target"].strip())


def question_of(item: dict, scores: list[Score]) -> dict:
    """An option's text without its leading space counts, as in acc_norm."""
    texts = [candidate["continuation"].removeprefix(" ") for candidate in item["candidates"]]
    return {
        "item": name_of(item),
        "gold": gold_of(item),
        "logprob": [score.logprob for score in scores],
        "chars": [len(text) for text in texts],
    }


def test_everything_agrees_with_lm_evaluation_harness(smollm2, shared):
    path = shared / "reference/lm_eval_smollm2_135m_instruct.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        items = sample(8, [json.loads(line) for line in file])
    expected = [(name_of(item), one) for item in items for one in item["candidates"]]
    asked = [
        Request(tuple(one["context_tokens"]), tuple(one["continuation_tokens"]), name)
        for name, one in expected
    ]
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    scores = score_requests(Engine(model, row_tokens=1024, device="cpu"), asked)
    for score, (name, candidate) in zip(scores, expected, strict=True):
        assert score.logprob == pytest.approx(candidate["logprob"], abs=TOLERANCE), name
        assert score.is_greedy == candidate["is_greedy"], name
    remaining = iter(scores)
    for task, group in groupby(items, key=lambda item: item["task"]):
        of_task = list(group)
        scored = (list(islice(remaining, len(item["candidates"]))) for item in of_task)
        table = table_of(*map(question_of, of_task, scored))
        credits = measure_questions(table).credits
        for theirs, ours in (("acc", "raw"), ("acc_norm", "per_char")):
            if theirs in of_task[0]:
                assert credits[ours].tolist() == [item[theirs] for item in of_task], (task, theirs)

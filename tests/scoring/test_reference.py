"""Log-probabilities and accuracies that lm-evaluation-harness gave on a real model.

Every fourth question of each task; all of them with EVAL_FULL=1.
"""

import gzip
import json
import os
from itertools import groupby, islice

import pyarrow as pa
import pytest
import torch
from transformers import AutoModelForCausalLM

from evaluation.grading.tiers import SCHEMA
from evaluation.metrics.accuracy import candidate_scores, credit_items, group_items
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_requests
from evaluation.scoring.engine.window import Request, Score

TOLERANCE = 1e-3
"""Of which the reference's own float32 log_softmax takes up to 9e-4."""


def request_of(candidate: dict, name: str) -> Request:
    return Request(
        tuple(candidate["context_tokens"]), tuple(candidate["continuation_tokens"]), name
    )


def gold_of(item: dict) -> int:
    """The target is an index, or the text; both ends are the same in winogrande's two candidates,
    of which `acc` tells whether the likelier one was right."""
    texts = [candidate["continuation"].strip() for candidate in item["candidates"]]
    if item["task"] == "winogrande":
        first, second = (candidate["logprob"] for candidate in item["candidates"])
        return int((second > first) == (item["acc"] == 1))
    return int(item["target"]) if item["target"].isdigit() else texts.index(item["target"].strip())


def rows_of(item: dict, scores: list[Score]) -> list[dict]:
    """Table rows; an option's text without its leading space counts, as in acc_norm."""
    texts = [candidate["continuation"].removeprefix(" ") for candidate in item["candidates"]]
    return [
        {
            "item": f"{item['task']}/{item['doc_id']}",
            "cluster": None,
            "candidate": i,
            "gold": i == gold_of(item),
            "logprob": score.logprob,
            "unconditional": None,
            "tokens": len(candidate["continuation_tokens"]),
            "chars": len(text),
            "bytes": len(text.encode()),
            "is_greedy": score.is_greedy,
        }
        for i, (candidate, text, score) in enumerate(
            zip(item["candidates"], texts, scores, strict=True)
        )
    ]


def test_everything_agrees_with_lm_evaluation_harness(smollm2, shared):
    path = shared / "reference/lm_eval_smollm2_135m_instruct.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        items = [json.loads(line) for line in file][:: 1 if os.environ.get("EVAL_FULL") else 4]
    asked = [
        request_of(candidate, f"{item['task']}/{item['doc_id']}")
        for item in items
        for candidate in item["candidates"]
    ]
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    scores = score_requests(Engine(model, row_tokens=1024, device="cpu"), asked)
    expected = [candidate for item in items for candidate in item["candidates"]]
    for request, score, candidate in zip(asked, scores, expected, strict=True):
        assert score.logprob == pytest.approx(candidate["logprob"], abs=TOLERANCE), request.name
        assert score.is_greedy == candidate["is_greedy"], request.name
    remaining = iter(scores)
    for task, group in groupby(items, key=lambda item: item["task"]):
        of_task = list(group)
        rows = [
            row
            for item in of_task
            for row in rows_of(item, list(islice(remaining, len(item["candidates"]))))
        ]
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        groups, gold = group_items(table), table["gold"].to_numpy(zero_copy_only=False)
        ranked = candidate_scores(table)
        for theirs, ours in (("acc", "raw"), ("acc_norm", "per_char")):
            if theirs in of_task[0]:
                credit = credit_items(ranked[ours], gold, groups).credit
                assert credit.tolist() == [item[theirs] for item in of_task], (task, theirs)

"""A riddle is solved if its answer is likelier than a draw of tokens."""

import math
from functools import partial

import pyarrow as pa

from evaluation.scoring.engine.window import Request
from evaluation.settings.tiers import TIERS
from evaluation.store import StoredScore


def score_riddles(job, books):
    own = {"protocol": TIERS["toy"].protocol}
    backend = job.backend
    items = {
        name: job.item(name, own, book.meta, partial(_score, backend, book))
        for name, book in books.items()
    }
    return {"items": items}


def _score(backend, book):
    requests = [Request(*map(tuple, one["tokens"]), one["id"]) for one in book.riddles]
    scores = backend.log_likelihoods(requests, label="riddles")
    draw = -math.log(book.meta["vocab_size_needed"])
    solved = [
        score.logprob > draw * len(request.continuation)
        for score, request in zip(scores, requests, strict=True)
    ]
    ids = [request.name for request in requests]
    return StoredScore(pa.table({"riddle": ids, "solved": solved}), {})

"""Tier3: score candidate answers by log-likelihood, question by question.

The key of a stored question is what the model reads of it. The right answer and the question's groups
are joined later, where scores are graded.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

import pyarrow as pa

from evaluation.prefill.caches import TaskCache, TokenizedQuestion
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.packing import common, key_of
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.loop import Part, Planned, ScoredItem, Wanted, in_parts
from evaluation.scoring.session import Job
from evaluation.scoring.window import Request, Window
from evaluation.settings.tiers import TIERS
from evaluation.store import Rows

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("logprob", pa.list_(pa.float64())),
        ("unconditional", pa.list_(pa.float64())),
        ("is_greedy", pa.list_(pa.bool_())),
        ("truncated", pa.int32()),
    ]
)
"""One row for each question, with a value for each candidate; `truncated` counts contexts."""


def plan_tasks(job: Job, tasks: Mapping[str, TaskCache]) -> Planned:
    """Return the tasks' questions as items."""
    window = job.window
    kept = {} if window.bos is None else {"bos": window.bos}
    key = {"protocol": TIERS["tier3"].protocol, "prefix_token": window.prefix, **kept}
    key = job.key(key)
    items = [
        ScoredItem(name, Rows(job.store, f"choices-{name}", key), cache.keys, score_tasks, cache)
        for name, cache in tasks.items()
    ]
    entries = {item.name: {"choices": item.rows.prefix} for item in items}
    return Planned(items, lambda: {"items": entries})


def score_tasks(job: Job, wanted: Wanted) -> Iterator[list[Part]]:
    """Score the questions of tasks, the longest ones first."""
    parts = [
        (item, {key: questions[key] for key in part})
        for item, keys in wanted.items()
        for questions in [dict(zip(item.data.keys, item.data.items, strict=True))]
        for part in _parts(job, {key: questions[key] for key in keys})
    ]
    parts.sort(key=lambda part: -max(map(_size, part[1].values())))
    engine = job.backend.engine
    yield []
    for item, questions in parts:
        before = engine.tokens_processed
        with job.naming(item.name):
            table = score_questions(engine, questions, job.window)
        yield [Part(item, table, engine.tokens_processed - before)]


def _parts(job: Job, questions: Mapping[str, TokenizedQuestion]) -> Iterator[list[str]]:
    """Yield keys of questions in parts, those with a common prefix together."""
    contexts = {key: key_of(item.contexts[0].tokens) for key, item in questions.items()}
    keys = sorted(contexts, key=contexts.__getitem__)
    shared = [common(contexts[one], contexts[other]) for one, other in pairwise(keys)]
    sizes = [_size(questions[key]) - n for key, n in zip(keys, [0, *shared], strict=True)]
    return in_parts(keys, sizes, job)


def _size(item: TokenizedQuestion) -> int:
    """Return about how many tokens a question has."""
    return len(item.contexts[0].tokens) + sum(len(one.tokens) for one in item.candidates)


def score_questions(
    engine: Engine, questions: Mapping[str, TokenizedQuestion], window: Window
) -> pa.Table:
    """Score every candidate of questions, and the unconditional log-likelihoods that `pmi` subtracts.

    Returns a table of SCHEMA, a row for each question; errors name the item.
    """
    fitted = [[window.fit(one) for one in _requests(item)] for item in questions.values()]
    scores = iter(score_requests(engine, [one for part in fitted for one, _ in part]))
    rows = []
    for (key, item), part in zip(questions.items(), fitted, strict=True):
        own = [*islice(scores, len(item.candidates))]
        alone = [score.logprob for score in islice(scores, len(item.unconditional or ()))]
        rows.append(
            {
                "key": key,
                "logprob": [score.logprob for score in own],
                "unconditional": alone or None,
                "is_greedy": [score.is_greedy for score in own],
                "truncated": sum(is_truncated for _, is_truncated in part),
            }
        )
    return pa.Table.from_pylist(rows, SCHEMA)


def _requests(item: TokenizedQuestion) -> Sequence[Request]:
    """Return a question's candidates, then its unconditional ones."""
    kinds = {"candidate": item.candidates, "unconditional candidate": item.unconditional or ()}
    return [
        Request(
            item.contexts[candidate.context].tokens,
            candidate.tokens,
            f"{item.id}, {kind} {number}",
        )
        for kind, candidates in kinds.items()
        for number, candidate in enumerate(candidates)
    ]

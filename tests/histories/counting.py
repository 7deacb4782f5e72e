"""What the engine is asked, question by question, in a file that whoever plays a history reads."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Counting:
    """A backend that counts what it is asked, question by question."""

    def __init__(self, backend: Any, stand: Any) -> None:
        self._backend, self._stand = backend, stand

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def log_likelihoods(self, requests: Sequence[Any]) -> Any:
        questions: dict[str, list[Any]] = {}
        for one in requests:  # what is stored is a question, with all its candidates
            asked = [list(one.context), list(one.continuation)]
            questions.setdefault(one.name.partition(", ")[0], []).append(asked)
        _count(self._stand, "tier3", "tasks", list(questions.values()))
        return self._backend.log_likelihoods(requests)

    def block_nats(self, tokens: Any, document_starts: Any) -> Any:
        starts = None if document_starts is None else document_starts.tolist()
        _count(self._stand, "tier2", "slices", [[tokens.tolist(), starts]])
        return self._backend.block_nats(tokens, document_starts)

    def answers(self, requests: Sequence[Any], *, vocabulary: int) -> Any:
        asked: list[Any] = []
        ids = list(range(vocabulary))
        read = {id(one.stopping): "" for one in requests}
        for one in requests:
            read[id(one.stopping)] = read[id(one.stopping)] or one.stopping.decode([], ids)
        for batch in self._backend.answers(requests, vocabulary=vocabulary):
            for key, answer in batch.items():
                stopping = requests[key.request].stopping
                read_as = read[id(stopping)]  # another tokenizer reads other answers
                one, tier = requests[key.request], tier_of(requests[key.request])
                item = [list(one.tokens), one.max_new_tokens, sorted(stopping.strings), read_as]
                if tier == "tier5":  # with other stops it may go on, which makes it another
                    about = one.sampling.model_dump(exclude={"n"})
                    item[2:3] = [key.sample, about, answer.raw]
                if item not in asked:  # one prompt may stand in several rows
                    _count(self._stand, tier, one.id, [item])
                asked.append(item)
            yield batch


def tier_of(request: Any) -> str:
    """Return `tier4` for a probe: all are asked with the same sampling, which is no task's."""
    from evaluation.scoring.completions import GREEDY

    return "tier4" if request.sampling is GREEDY else "tier5"


def _count(model: Any, tier: str, name: str, items: list[Any]) -> None:
    from evaluation.settings.tiers import TIERS

    about = [TIERS[tier].protocol, model.content, model.dtype]
    write_count(tier, name, [[*about, item] for item in items], model.state)


def write_count(tier: str, name: str, asked: list[Any], state: str = "") -> None:
    place = os.environ.get("HISTORIES_COUNTS")
    if not place:
        return
    keys = sorted({_digest(json.dumps(one)) for one in asked})
    line = {"tier": tier, "name": name, "keys": keys, "state": _digest(state)}
    with open(place, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def counts(place: Path) -> list[dict[str, Any]]:
    """What was scored, as `HISTORIES_COUNTS` has it."""
    if not place.exists():
        return []
    return [json.loads(line) for line in place.read_text().splitlines()]

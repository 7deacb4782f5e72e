"""Tier3 tasks: questions as token ids in `examples.jsonl`, data for grading in `docs.jsonl`."""

import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.files import fingerprint, write_jsonl
from evaluation.prefill.caches import DOCUMENTS, EXAMPLES
from evaluation.prefill.entries import counted
from evaluation.prefill.items import read_task, warn_of_equal
from evaluation.prefill.provided import provided_questions
from evaluation.prefill.questions import Question, Recipe
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.settings import protocol
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderChoices
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.encoding import EncodedPair, bos_ids, encode_pairs, put_before

log = logging.getLogger(__name__)

_BATCH = 256
"""Questions tokenized at once."""


def prefill_task(plan: StagePlan, name: str, _: Any, building: Path) -> dict[str, Any]:
    """Write a task's files; return its part of meta.json."""
    task, tokenizer = plan.suite.tasks[name], stage_tokenizer(plan)
    if isinstance(task, ProviderChoices):
        questions, total, recorded = provided_questions(plan, name, task)
    else:
        questions, total, recorded = read_task(Recipe(name, task), task, plan.config)
        if task.kind == "gold":
            warn_of_equal(f"tasks.{name}", [question.pairs[0][1] for question in questions])
    writer = _Writer(plan, name, tokenizer)
    write_jsonl(building / EXAMPLES, writer.examples(questions))
    write_jsonl(building / DOCUMENTS, writer.documents)
    return {
        "protocol": protocol.PREFILL_TASK,
        "task": task.model_dump(mode="json"),
        "items": counted(total, len(questions), limit=total - len(questions)),
        **recorded,
        **writer.counts(),
        "vocab_size_needed": tokenizer.rows,
    }


class _Writer:
    """Tokenizes questions: yields lines of `examples.jsonl`, and collects those of `docs.jsonl`."""

    def __init__(self, plan: StagePlan, name: str, tokenizer: LoadedTokenizer) -> None:
        self._key, self._tokenizer, self._window = f"tasks.{name}", tokenizer, plan.sequence_length
        self._before = bos_ids(tokenizer, plan.tokenizer.prepend_bos)
        self._longest = 0
        self._across = Counter[str]()
        self.documents: list[dict[str, Any]] = []

    def examples(self, questions: Sequence[Question]) -> Iterator[dict[str, Any]]:
        """Yield the lines of `examples.jsonl`: questions as token ids."""
        for start in range(0, len(questions), _BATCH):
            batch = questions[start : start + _BATCH]
            pairs = [pair for question in batch for pair in question.scored_pairs]
            encoded = iter(encode_pairs(self._tokenizer, pairs))
            yield from (self._example(question, encoded) for question in batch)

    def counts(self) -> dict[str, Any]:
        """Return statistics of the questions for meta.json.

        Warns of those whose context and candidate share a token, which is scored as the context's.
        """
        if self._across:
            log.warning(
                "%s: of %d questions, %d (the first: %s) have a candidate that begins inside a token "
                "of its context, so that its first characters are not scored, as in lm-evaluation-harness; "
                "end the context before a blank, and begin the candidates with it",
                *(self._key, len(self.documents), len(self._across), next(iter(self._across))),
            )
        candidates = [len(line["sizes"]) for line in self.documents]
        return {
            "candidates": sum(candidates),
            "chance": math.fsum(1 / count for count in candidates) / len(candidates),
            "max_tokens": self._longest,
            "asked_content": fingerprint(sorted({line["key"] for line in self.documents})),
            "across_border": {
                "questions": len(self._across),
                "candidates": self._across.total(),
            },
        }

    def _example(self, question: Question, encoded: Iterator[EncodedPair]) -> dict[str, Any]:
        contexts: dict[str, list[int]] = {}
        scored: list[dict[str, Any]] = []
        for (context, text), ids in zip(question.scored_pairs, encoded, strict=False):
            tokens, rest = self._divided(ids)
            self._check(question.id, text, rest)
            self._longest = max(self._longest, len(tokens) + len(rest))
            self._across.update([question.id] * (not ids.meets))
            contexts.setdefault(context, tokens)
            measured = text if question.counts_space else text.removeprefix(" ")
            size = {"chars": len(measured), "bytes": len(measured.encode())}
            place = list(contexts).index(context)
            scored.append({"context": place, "text": text, "tokens": rest, **size})
        count = len(question.pairs)
        asked, alone = scored[:count], scored[count:]
        read = ([[one["context"], one["tokens"]] for one in part] for part in (asked, alone))
        key = fingerprint([list(contexts.values()), *read])
        shared = {key: getattr(question, key) for key in ("cluster", "stratum", "gold")}
        sizes = [[len(one["tokens"]), one["chars"], one["bytes"]] for one in asked]
        same = {"question": question.question, "row": question.row}
        self.documents.append({"id": question.id, "key": key, **shared, "sizes": sizes, **same})
        shown = [{"text": text, "tokens": tokens} for text, tokens in contexts.items()]
        lines = {"contexts": shown, "candidates": asked, "unconditional": alone or None}
        return {"id": question.id, **shared, **lines}

    def _divided(self, ids: EncodedPair) -> tuple[list[int], list[int]]:
        """Return a context's ids with BOS in front, which a text may begin with, and the continuation's."""
        if ids.context or not self._before:
            return put_before(self._before, ids.context), ids.continuation
        return self._before, put_before(self._before, ids.continuation)[len(self._before) :]

    def _check(self, id: str, continuation: str, ids: list[int]) -> None:
        if not ids:
            raise SourceError(
                f"{id}: the candidate {continuation!r} has no token of its own, as the tokenizer joins it to "
                f"the context; begin it with a space in {self._key}, or end the context with a line break"
            )
        if len(ids) >= self._window:
            raise SourceError(
                f"{id}: the candidate {continuation[:60]!r}… has {len(ids)} tokens and leaves no context in "
                f"a window of {self._window}; raise `sequence_length` or correct {self._key}.continuation"
            )

"""Tier3 tasks: questions as token ids in `examples.jsonl`, what grading reads in `docs.jsonl`."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation import protocol
from evaluation.errors import SourceError
from evaluation.files import fingerprint, write_jsonl
from evaluation.prefill.caches import DOCUMENTS, EXAMPLES
from evaluation.prefill.definitions import asked_task_definition, task_definition
from evaluation.prefill.encoding import encode_pairs
from evaluation.prefill.entries import is_current, new_entry, write_meta
from evaluation.prefill.providers import provided_questions
from evaluation.prefill.questions import Pair, Question, Recipe, read_questions
from evaluation.prefill.sources import Sources, locate_task
from evaluation.prefill.tokenizers import (
    AnyTokenizer,
    bos_ids,
    fetch_tokenizer,
    load_tokenizer,
    vocabulary_size,
)
from evaluation.progress import progress
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import ProviderChoices

log = logging.getLogger(__name__)

_BATCH = 256
"""Questions tokenized at once."""


def prefill_task(plan: StagePlan, name: str) -> None:
    """Writes a task to `plan.task_folder(name)`; returns at once if it is there already.

    Raises:
        SourceError: data cannot be read, a label is hidden, a candidate is empty or too long.
        ConfigError: a template does not parse.
    """
    task = plan.suite.tasks[name]
    about = fetch_tokenizer(plan)
    origins, shots = locate_task(task, plan.config.mirrors)
    definition = task_definition(plan, name, about)
    sources = Sources(plan, [*origins, *shots])
    folder = plan.task_folder(name)
    if is_current(folder, definition, sources.are_as):
        return
    tokenizer = load_tokenizer(plan.tokenizer_folder, use_fast=plan.tokenizer.use_fast)
    if isinstance(task, ProviderChoices):
        questions, said = provided_questions(plan, name, task)
        there, keep = said.documents, {"version", "num_fewshot", "datasets"}
        source = {"name": task.provider, **said.model_dump(include=keep)}
        source |= sources.describe_provided(said)
    else:
        questions, there = read_questions(Recipe(name, task), task, origins, shots)
        source = sources.describe()
    writer = _Writer(name, tokenizer, bos_ids(tokenizer, plan.tokenizer.prepend_bos), plan)
    with new_entry(folder) as building:
        writer.write(questions, building / EXAMPLES)
        write_jsonl(building / DOCUMENTS, writer.documents)
        meta = {
            "definition": definition,
            "asked_definition": asked_task_definition(plan, name, about),
            "protocol": protocol.PREFILL_TASK,
            "task": task.model_dump(mode="json"),
            "items": {
                "asked": there,
                "used": len(questions),
                "left_out": {"limit": there - len(questions)} if there > len(questions) else {},
            },
            **writer.counts(),
            "vocab_size_needed": vocabulary_size(tokenizer),
            "tokenizer": about,
            "source": source,
        }
        write_meta(building, meta, [EXAMPLES, DOCUMENTS])


class _Writer:
    """Tokenizes questions, writes them, and counts what they hold."""

    def __init__(
        self, name: str, tokenizer: AnyTokenizer, before: list[int], plan: StagePlan
    ) -> None:
        self._name, self._tokenizer, self._before = name, tokenizer, before
        self._window = plan.sequence_length
        self._chances: list[float] = []
        self._candidates = 0
        self._longest = 0
        self.documents: list[dict[str, Any]] = []

    def write(self, questions: Sequence[Question], path: Path) -> None:
        with progress(self._name, len(questions), "items") as bar:
            write_jsonl(path, bar_over(bar, self._rows(questions)))

    def counts(self) -> dict[str, Any]:
        return {
            "candidates": self._candidates,
            "chance": math.fsum(self._chances) / len(self._chances),
            "max_tokens": self._longest,
            "asked_content": fingerprint(sorted({line["key"] for line in self.documents})),
        }

    def _rows(self, questions: Sequence[Question]) -> Iterator[dict[str, Any]]:
        for start in range(0, len(questions), _BATCH):
            batch = questions[start : start + _BATCH]
            pairs = [pair for question in batch for pair in _pairs(question)]
            encoded = iter(encode_pairs(self._tokenizer, pairs))
            for question in batch:
                yield self._row(question, encoded)

    def _row(
        self, question: Question, encoded: Iterator[tuple[list[int], list[int]]]
    ) -> dict[str, Any]:
        contexts: dict[str, dict[str, Any]] = {}
        scored = []
        for pair, ids in zip(_pairs(question), encoded, strict=False):
            scored.append(self._candidate(question, pair, ids, contexts))
        count = len(question.pairs)
        self._chances.append(1 / count)
        self._candidates += count
        graded = {
            "cluster": question.cluster,
            "stratum": question.stratum,
            "gold": question.gold,
        }
        asked = {
            "contexts": list(contexts.values()),
            "candidates": scored[:count],
            "unconditional": scored[count:] or None,
        }
        sizes = [[len(one["tokens"]), one["chars"], one["bytes"]] for one in scored[:count]]
        key = {"id": question.id, "key": question_key(asked)}
        self.documents.append({**key, **graded, "sizes": sizes})
        return {"id": question.id, **graded, **asked}

    def _candidate(
        self,
        question: Question,
        pair: Pair,
        ids: tuple[list[int], list[int]],
        contexts: dict[str, dict[str, Any]],
    ) -> dict[str, Any]:
        """A candidate's row; adds its context to `contexts` if it is not there."""
        context, continuation = pair
        tokens = [*self._before, *ids[0]]
        self._check(question, continuation, ids[1])
        self._longest = max(self._longest, len(tokens) + len(ids[1]))
        contexts.setdefault(context, {"text": context, "tokens": tokens})
        bare = continuation.removeprefix(" ")
        return {
            "context": list(contexts).index(context),
            "text": continuation,
            "tokens": ids[1],
            "chars": len(bare),
            "bytes": len(bare.encode()),
        }

    def _check(self, question: Question, continuation: str, ids: list[int]) -> None:
        if not ids:
            raise SourceError(
                f"{question.id}: the candidate {continuation!r} has no token of its own, as the "
                f"tokenizer joins it to the context; begin it with a space in tasks.{self._name}"
            )
        if len(ids) >= self._window:
            raise SourceError(
                f"{question.id}: the candidate {continuation[:60]!r}… has {len(ids)} tokens and "
                f"leaves no context in a window of {self._window}; raise `sequence_length` or "
                f"correct `continuation` of tasks.{self._name}"
            )


def question_key(asked: Mapping[str, Any]) -> str:
    """Of what a model reads of a question and what is asked of it: tokens alone, in their order."""
    pairs = (asked["candidates"], asked["unconditional"] or [])
    return fingerprint(
        [
            [context["tokens"] for context in asked["contexts"]],
            *([[one["context"], one["tokens"]] for one in scored] for scored in pairs),
        ]
    )


def bar_over(bar: Any, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row
        bar.update()


def _pairs(question: Question) -> tuple[Pair, ...]:
    return question.pairs + (question.unconditional or ())

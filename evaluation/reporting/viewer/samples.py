"""Questions, prompts, completions and blocks of one checkpoint, each with its verdict."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.errors import CacheError, ResultsError
from evaluation.metrics.accuracy import candidate_scores, group_items
from evaluation.prefill.caches import read_documents, read_task
from evaluation.reporting.flips.blocks import block_losses
from evaluation.reporting.flips.items import scored_cache
from evaluation.results.probe_files import Tier4File, read_generations
from evaluation.results.read import TierResults
from evaluation.results.tier_files import TaskEntry
from evaluation.results.verified_files import GenerationEntry, read_verified
from evaluation.settings.plan import StagePlan


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A question, prompt or block with what the model answered, and its scores by metric.

    `choices` are candidates with their log-probabilities; `outputs` are completions, or the candidate
    that ranks first. `ranked_by` are the scores that rank the choices.
    """

    id: str
    prompt: str = ""
    references: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    scores: Mapping[str, float]
    headline: str
    method: str = ""
    choices: tuple[str, ...] = ()
    logprobs: tuple[float, ...] = ()
    is_greedy: tuple[bool, ...] = ()
    gold: int | None = None
    extracted: str = ""
    tokens: tuple[int, int] | None = None
    about: Mapping[str, Any] | None = None
    reasons: tuple[str, ...] = ()
    ranked_by: tuple[float, ...] = ()

    @property
    def score(self) -> float | None:
        """Score by the metric that decides objectives; None where it could not be judged."""
        return self.scores.get(self.headline)


def samples_of(plan: StagePlan, tier_results: TierResults, name: str) -> Iterator[Sample]:
    """Yield the samples of an item in the order of the data set, those of one prompt together.

    Those of a slice are its blocks, each with its loss; their text stays in the cache.

    Raises:
        ResultsError: Texts or completions that were scored are no longer there.
    """
    item = tier_results.items[name]
    if isinstance(item.entry, TaskEntry):
        yield from _questions(plan, tier_results, name)
    elif isinstance(item.entry, GenerationEntry):
        yield from _completions(plan, tier_results, name, item.entry)
    elif isinstance(tier_results.file, Tier4File):
        yield from _answers(tier_results, tier_results.file, name)
    else:
        head = tier_results.tier.headline
        for block, loss in block_losses(tier_results, name).items():
            yield Sample(id=block, scores={head: loss}, headline=head)


def _questions(plan: StagePlan, tier_results: TierResults, name: str) -> Iterator[Sample]:
    item = tier_results.items[name]
    if (table := tier_results.details()) is None:
        return
    rows = tier_results.rows_of(table, name)
    folder = plan.cache_folder("tier3", name)
    _check_scored(folder, item.same.get("data"))
    texts = {question.id: question for question in read_task(folder).items}
    entry = item.entry
    assert isinstance(entry, TaskEntry)
    primary = entry.primary or "raw"
    scores, groups = candidate_scores(rows), group_items(rows)
    columns = {key: rows[key].to_pylist() for key in ("item", "gold", "logprob", "is_greedy")}
    for start, size in zip(groups.starts, groups.sizes, strict=True):
        of = slice(int(start), int(start + size))
        id = columns["item"][of.start]
        if id not in texts:
            raise ResultsError(f"{folder}: has no question {id!r}, which was scored; prefill again")
        question, gold = texts[id], columns["gold"][of].index(True)
        choices = tuple(candidate.text for candidate in question.candidates)
        credits = {key: _credit(values[of], gold) for key, values in scores.items()}
        ranked = int(np.argmax(scores[primary][of])) if entry.kind == "ranked" else gold
        if entry.kind == "gold":
            credits = {"greedy": float(bool(columns["is_greedy"][of][0]))}
        yield Sample(
            id=id,
            prompt=question.contexts[question.candidates[gold].context].text,
            references=(choices[gold],),
            outputs=(choices[ranked],) if entry.kind == "ranked" else (),
            scores=credits,
            headline=primary if entry.kind == "ranked" else "greedy",
            method=f"candidate of the highest log-probability ({primary})",
            choices=choices,
            logprobs=tuple(columns["logprob"][of]),
            is_greedy=tuple(bool(value) for value in columns["is_greedy"][of]),
            gold=gold,
            ranked_by=tuple(map(float, scores[primary][of])),
            extracted=choices[ranked],
        )


def _credit(values: Any, gold: int) -> float:
    """Return the credit for the best candidate, shared among those that are equally good."""
    best = np.flatnonzero(values == values.max())
    return 1 / len(best) if gold in best else 0.0


def _completions(
    plan: StagePlan, tier_results: TierResults, name: str, entry: GenerationEntry
) -> Iterator[Sample]:
    folder = plan.cache_folder("tier5", name)
    try:
        documents = read_documents(folder)
    except CacheError:
        documents = {}  # only the gold answers are lacking
    for line in read_verified(tier_results.folder, name):
        document = documents.get(line.id)
        gold = document.document.get("gold") if document else None
        yield Sample(
            id=line.id,
            prompt=line.prompt,
            references=() if gold is None else (_as_text(gold),),
            outputs=(line.completion,),
            scores={view: credit for view, credit in line.credits.items() if credit is not None},
            headline=entry.primary,
            method=f"verifier {entry.primary}",
            extracted=line.verdicts[entry.primary].answer or "",
            tokens=(line.prompt_tokens, line.completion_tokens),
            about={"sample": line.sample, "stop_reason": line.stop_reason},
            reasons=line.reasons,
        )


def _answers(tier_results: TierResults, file: Tier4File, name: str) -> Iterator[Sample]:
    texts = read_generations(tier_results.folder / tier_results.tier.items_file)
    for prompt in file.prompts or ():
        if prompt.category != name:
            continue
        text = texts[prompt.id]
        passed = all(check.passed for check in prompt.checks.values())
        checks = {key: float(check.passed) for key, check in prompt.checks.items()}
        yield Sample(
            id=prompt.id,
            prompt=text.prompt,
            outputs=(text.response,),
            scores={tier_results.tier.headline: float(passed), **checks},
            headline=tier_results.tier.headline,
            method="checks " + ", ".join(prompt.checks),
            extracted=text.response,
            about={"stop_reason": prompt.stop_reason},
        )


def _check_scored(folder: Path, checksum: Any) -> None:
    """Raise ResultsError unless a cache holds the data that was scored."""
    if scored_cache(folder, checksum) is None:
        raise ResultsError(
            f"{folder}: is not there, or holds other questions than those that were scored; prefill with "
            "the settings of that time, or score again"
        )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def has_samples(tier_results: TierResults, name: str) -> bool:
    """Return whether an item has samples: an external program may write none."""
    item = tier_results.items[name]
    if isinstance(item.entry, TaskEntry):
        return (tier_results.folder / tier_results.tier.items_file).exists()
    return tier_results.tier.kind == "credit" or item.units is not None

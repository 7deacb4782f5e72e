"""Tier5: a task's stored completions, cut, verified, and summarized: rates, pass@k, cons@n.

pass@k    chance that one of k samples is right, without bias: 1 - C(n-c, k) / C(n, k)
          (Chen et al. 2021, arXiv 2107.03374)
cons@n    whether the answer that most of the samples give is right; answers that tie for the most
          share the credit

`generation/<task>/results.jsonl` has a line a sample: prompt, completion, how it ended, verdicts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import fmean
from typing import Any

import numpy as np

from evaluation.errors import ScoringError
from evaluation.grading.verdicts import AnswerJob, check_errors
from evaluation.metrics.layout import Layout
from evaluation.metrics.variance import Floats
from evaluation.prefill.caches import DocumentLine, PromptCache
from evaluation.results.units import SOURCES, Units, groupings_of, units_of
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.generation import CompletionTask
from evaluation.settings.measured import TRUNCATED
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import AnyVerifier, Provided
from evaluation.verification.answers import AnswerKind
from evaluation.verification.registry import VERIFIERS
from evaluation.verification.thinking import answer_part
from evaluation.verification.verdicts import (
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    UNFINISHED,
    Verdict,
    unless_unfinished,
)

Sample = tuple[str, int, StoredCompletion]
"""A prompt's id, the index of one of its samples, and the completion."""


@dataclass(frozen=True)
class VerifiedSample:
    """A completion of a prompt and each verifier's verdict on it."""

    index: int
    completion: StoredCompletion
    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True)
class SampledPrompt:
    """A prompt as the model read it, with all of its samples."""

    line: DocumentLine
    text: str
    samples: Sequence[VerifiedSample]

    def valid(self, view: str) -> list[Verdict]:
        """Return a verifier's verdicts in the order of samples, without samples on which it failed."""
        return [v for s in self.samples if (v := s.verdicts[view]).credit is not None]

    def credit(self, view: str) -> float:
        """Return the mean credit over samples; NaN where the verifier failed on all of them."""
        valid = self.valid(view)
        return fmean(v.credit or 0 for v in valid) if valid else math.nan


def verify_samples(
    task: CompletionTask,
    cache: PromptCache,
    documents: Mapping[str, DocumentLine],
    samples: Sequence[Sample],
    find: Callable[[Sequence[AnswerJob]], Sequence[Verdict]],
) -> list[SampledPrompt]:
    """Return the prompts of some samples, in the order in which these occur, with all verdicts.

    Args:
        find: Returns a verdict for each job.
    """
    texts = {prompt.id: prompt.prompt for prompt in cache.prompts}
    after, template = task.answer_after, cache.meta.get("chat_template")
    answers = [
        answer_part(completion.text, texts[prompt], after, template)
        for prompt, _, completion in samples
    ]
    found = find(
        [
            (verifier, documents[prompt].document, answer or "")
            for verifier in task.views.values()
            for (prompt, _, _), answer in zip(samples, answers, strict=True)
        ]
    )
    verdicts = map(unless_unfinished, found, cycle([answer is None for answer in answers]))
    by_view = {view: [*islice(verdicts, len(samples))] for view in task.views}
    of_prompt: dict[str, list[VerifiedSample]] = {}
    for number, (prompt, index, completion) in enumerate(samples):
        of_sample = {view: of_view[number] for view, of_view in by_view.items()}
        of_prompt.setdefault(prompt, []).append(VerifiedSample(index, completion, of_sample))
    return [
        SampledPrompt(documents[prompt], texts[prompt], verified)
        for prompt, verified in of_prompt.items()
    ]


def check_samples(prompts: Sequence[SampledPrompt], name: str, max_error_share: float) -> None:
    """Check that every verifier verified enough samples of a task; raise ScoringError."""
    of_sample = {f"sample {s.index} of {p.line.id}": s.verdicts for p in prompts for s in p.samples}
    for view in prompts[0].samples[0].verdicts:
        verdicts = {place: of_view[view] for place, of_view in of_sample.items()}
        check_errors(f"{name}: {view}", verdicts, max_error_share)


def prompt_units(prompts: Sequence[SampledPrompt], views: Iterable[str]) -> Units:
    """Return a task's prompts, with pass rates by each verifier and what does not depend on verdicts.

    Args:
        views: The task's verifiers; the first is the primary one.
    """
    tier, (primary, *others) = TIERS["tier5"], views
    lines, drawn = [prompt.line for prompt in prompts], [prompt.samples for prompt in prompts]
    columns: dict[str, Floats] = {
        tier.headline_by(view, primary): np.array([prompt.credit(view) for prompt in prompts])
        for view in (primary, *others)
    }
    for name, formula in FORMULAS.items():
        columns[name] = np.array(
            [fmean(formula(s.completion) for s in samples) for samples in drawn]
        )
    ids = [line.id for line in lines]
    groupings = groupings_of(ids, [line.strata for line in lines])
    # A finer grouping than the first one would leave too few prompts in a group.
    strata = [next(iter(line.strata.values()), "") for line in lines]
    clusters = [line.cluster for line in lines if line.cluster is not None]
    layout = Layout(
        len(lines),
        clusters if len(clusters) == len(lines) else None,
        strata if all(line.strata for line in lines) else None,
        [[getattr(line, key) for line in lines] for key in SOURCES],
    )
    return units_of(tier, ids, layout, columns, groupings=groupings)


FORMULAS: Mapping[str, Callable[[StoredCompletion], float]] = {
    TRUNCATED.name: lambda completion: float(completion.stop_reason == "length"),
    "mean_tokens": lambda completion: completion.tokens,
}
"""A formula for each metric of Tier5 that is a mean over completions, whatever the verdicts."""


def summarize_task(
    prompts: Sequence[SampledPrompt], units: Units, views: Mapping[str, AnyVerifier]
) -> dict[str, Any]:
    """Return a task's entry of `tier5_verified.json`.

    Args:
        units: The prompts as `prompt_units` returns them.
        views: The task's verifiers by name; the first is the primary one.
    """
    primary = next(iter(views))
    samples = [sample for prompt in prompts for sample in prompt.samples]
    return {
        "verifiers": {
            view: _verifier(prompts, units, view, verifier, primary)
            for view, verifier in views.items()
        },
        "prompts": len(prompts),
        "samples": len(samples),
        **{TIERS["tier5"].metric(name).key: units.measured[name].value for name in FORMULAS},
        "empty_rate": sum(not s.completion.text.strip() for s in samples) / len(samples),
        "unfinished": sum(s.verdicts[primary].note == UNFINISHED for s in samples),
    }


def _verifier(
    prompts: Sequence[SampledPrompt], units: Units, view: str, verifier: AnyVerifier, primary: str
) -> dict[str, Any]:
    """Return a verifier's rates; raise ScoringError where it failed on all samples.

    `format_rate` is the share of samples from which it extracts anything. A rate of samples leaves out those
    on which it failed.
    """
    rate = units.measured.get(TIERS["tier5"].headline_by(view, primary))
    if rate is None:
        why = prompts[0].samples[0].verdicts[view].reason
        raise ScoringError(f"the verifier {view!r} failed on every completion (the first: {why})")
    verdicts = [verdict for prompt in prompts for verdict in prompt.valid(view)]
    weight = math.fsum(verdict.weight for verdict in verdicts)
    weighted = math.fsum(v.weight * (v.credit or 0) for v in verdicts)
    return {
        "pass_rate": rate.value,
        "weighted_rate": weighted / weight if weight else None,
        "format_rate": sum(verdict.answer is not None for verdict in verdicts) / len(verdicts),
        "errors": sum(len(prompt.samples) for prompt in prompts) - len(verdicts),
        "over_limits": sum(v.note in (OUT_OF_TIME, OUT_OF_MEMORY) for v in verdicts),
        **over_samples(prompts, view, verifier),
    }


def over_samples(
    prompts: Sequence[SampledPrompt], view: str, verifier: AnyVerifier
) -> dict[str, Any]:
    """Return pass@k by k, and cons@n for answers that can be compared, where there are several samples.

    A prompt counts for pass@k if at least k of its samples have a verdict; null where none does.
    """
    n = min(len(prompt.samples) for prompt in prompts)
    if n < 2:
        return {}
    valid = [prompt.valid(view) for prompt in prompts]
    rights = [(len(verdicts), sum(v.credit == 1 for v in verdicts)) for verdicts in valid]
    by_k = {
        k: [pass_at_k(drawn, right, k) for drawn, right in rights if drawn >= k]
        for k in sorted({2**i for i in range(n.bit_length())} | {n})
    }
    rates: dict[str, Any] = {
        "pass_at_k": {str(k): fmean(p) if p else None for k, p in by_k.items()}
    }
    kind = None if isinstance(verifier, Provided) else VERIFIERS[verifier.kind]
    if isinstance(kind, AnswerKind):  # of programs no two are the same answer
        credits = [
            majority([(_meaning(kind, verifier, v), v.credit == 1) for v in verdicts])
            for verdicts in valid
            if verdicts
        ]
        rates["cons_at_n"] = fmean(credits) if credits else None
    return rates


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return the chance that one of k of n samples is right, without bias."""
    if n - right < k:
        return 1.0
    return 1.0 - math.prod((n - right - i) / (n - i) for i in range(k))


def _meaning(kind: AnswerKind, verifier: AnyVerifier, verdict: Verdict) -> str | None:
    """Return one text for all right answers, one for all spellings of a wrong one; None without answer."""
    if verdict.answer is None:
        return None
    return "right" if verdict.credit == 1 else f"= {kind.bare(verifier, verdict.answer)}"


def majority(votes: Sequence[tuple[str | None, bool]]) -> float:
    """Return the credit of the most frequent answer (cons@n); answers that tie share it."""
    counts = Counter(vote for vote in votes if vote[0] is not None)
    best = [vote for vote, count in counts.items() if count == max(counts.values())]
    return sum(is_right for _, is_right in best) / len(best) if best else 0.0


def sample_rows(prompts: Sequence[SampledPrompt]) -> Iterator[dict[str, Any]]:
    """Yield the rows of `results.jsonl`."""
    for prompt in prompts:
        for sample in prompt.samples:
            yield {
                "id": prompt.line.id,
                "sample": sample.index,
                "prompt": prompt.text,
                "completion": sample.completion.text,
                "stop_reason": sample.completion.stop_reason,
                "prompt_tokens": sample.completion.prompt_tokens,
                "completion_tokens": sample.completion.tokens,
                "verdicts": {
                    view: {k: v for k, v in vars(verdict).items() if k != "note" or v}
                    for view, verdict in sample.verdicts.items()
                },
            }

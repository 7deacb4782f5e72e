"""Summarize a Tier5 task's completions and verdicts: rates, pass@k and strata."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evaluation.errors import ScoringError
from evaluation.metrics.pass_at_k import Interval, interval, majority, pass_at_k, powers
from evaluation.prefill.caches import DocumentLine
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import AnyVerifier, Provided
from evaluation.verification.registry import VERIFIERS
from evaluation.verification.sandbox.model import FORGED, UNGUARDED
from evaluation.verification.verdicts import OUT_OF_MEMORY, OUT_OF_TIME, UNFINISHED, Verdict


@dataclass(frozen=True)
class VerifiedSample:
    """A completion of a prompt and each verifier's verdict on it."""

    index: int
    completion: StoredCompletion
    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True)
class SampledPrompt:
    """A prompt with all of its samples."""

    line: DocumentLine
    samples: Sequence[VerifiedSample]

    def valid(self, view: str) -> list[Verdict]:
        """Return a verifier's verdicts in the order of samples, without samples on which it failed."""
        return [v for s in self.samples if (v := s.verdicts[view]).credit is not None]

    def credit(self, view: str) -> float | None:
        """Return the mean credit over samples; None where the verifier failed on all of them."""
        credits = [verdict.credit for verdict in self.valid(view) if verdict.credit is not None]
        return math.fsum(credits) / len(credits) if credits else None

    def right(self, view: str) -> int:
        """Return how many samples have the full credit."""
        return sum(verdict.credit == 1 for verdict in self.valid(view))


def group_samples(
    completions: Sequence[tuple[str, int, StoredCompletion]],
    verdicts: Mapping[str, Sequence[Verdict]],
    documents: Mapping[str, DocumentLine],
) -> list[SampledPrompt]:
    """Group completions by their prompts, in the order in which these occur first.

    Args:
        completions: Prompt, sample and completion of each.
        verdicts: For each verifier of the task, a verdict on each completion.
    """
    samples: dict[str, list[VerifiedSample]] = {}
    for number, (prompt, index, completion) in enumerate(completions):
        views = {view: by_case[number] for view, by_case in verdicts.items()}
        samples.setdefault(prompt, []).append(VerifiedSample(index, completion, views))
    return [SampledPrompt(documents[prompt], members) for prompt, members in samples.items()]


def summarize_task(
    prompts: Sequence[SampledPrompt], views: Mapping[str, AnyVerifier]
) -> dict[str, Any]:
    """Return a task's entry of `tier5_verified.json`.

    Args:
        views: The task's verifiers by name; the first is the primary one.
    """
    samples = [sample for prompt in prompts for sample in prompt.samples]
    ours = [view for view, verifier in views.items() if not verifier.IS_UPSTREAM]
    others = ours or list(views)
    return {
        "verifiers": {
            view: summarize_view(prompts, view, verifier, others)
            for view, verifier in views.items()
        },
        "prompts": len(prompts),
        "samples": len(samples),
        "truncated_rate": _share(s.completion.stop_reason == "length" for s in samples),
        "empty_rate": _share(not s.completion.text.strip() for s in samples),
        **measured(samples),
        "unfinished": sum(_is_unfinished(sample) for sample in samples),
        "right_by_any_rate": _right_by_any_rate(samples, views),
        "strata": _strata(prompts, next(iter(views))),
    }


FORMULAS: Mapping[str, Callable[[StoredCompletion], float]] = {
    "mean_tokens": lambda completion: completion.tokens,
}
"""A formula for each secondary metric of Tier5, which is its mean over completions."""


def measured(samples: Sequence[VerifiedSample]) -> dict[str, float]:
    """Return the secondary metrics of some samples, which need no verdicts."""
    names = [metric.name for metric in TIERS["tier5"].secondary]
    return {
        name: math.fsum(FORMULAS[name](sample.completion) for sample in samples) / len(samples)
        for name in names
    }


def _share(values: Iterable[bool]) -> float:
    values = list(values)
    return sum(values) / len(values)


def _is_unfinished(sample: VerifiedSample) -> bool:
    return any(verdict.note == UNFINISHED for verdict in sample.verdicts.values())


def _right_by_any_rate(
    samples: Sequence[VerifiedSample], views: Mapping[str, AnyVerifier]
) -> float | None:
    """Return the share that a verifier of ours passes; None if all give another harness's verdicts."""
    ours = [view for view, verifier in views.items() if not verifier.IS_UPSTREAM]
    return _share(_is_right(sample, ours) for sample in samples) if ours else None


def _is_right(sample: VerifiedSample, views: Iterable[str]) -> bool:
    return any(sample.verdicts[view].credit == 1 for view in views)


def _lacks_form(prompt: SampledPrompt, view: str, others: Sequence[str]) -> int:
    """Count the samples in which a verifier finds no answer, but another one finds the right answer."""
    found = [(s.verdicts[view], _is_right(s, others)) for s in prompt.samples]
    return sum(v.credit == 0 and v.answer is None and right for v, right in found)


def summarize_view(
    prompts: Sequence[SampledPrompt],
    view: str,
    verifier: AnyVerifier,
    others: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the rates of one verifier, with intervals over prompts, over the samples on which it did not fail.

    Args:
        others: Verifiers whose right answers show what this one does not find; all if not given.

    Raises:
        ScoringError: The verifier failed on all samples.
    """
    verdicts = [verdict for prompt in prompts for verdict in prompt.valid(view)]
    if not verdicts:
        why = prompts[0].samples[0].verdicts[view].reason
        raise ScoringError(f"the verifier {view!r} failed on every completion (the first: {why})")
    total = sum(len(prompt.samples) for prompt in prompts)
    others = others or list(prompts[0].samples[0].verdicts)
    rate = _with_interval(_credits(prompts, view))
    weight = math.fsum(verdict.weight for verdict in verdicts)
    weighted = math.fsum(v.weight * (v.credit or 0) for v in verdicts)
    return {
        "pass_rate": rate.pop("value"),
        **rate,
        "weighted_rate": weighted / weight if weight else None,
        "format_rate": _share(verdict.answer is not None for verdict in verdicts),
        "right_but_format_rate": sum(_lacks_form(p, view, others) for p in prompts) / len(verdicts),
        "errors": total - len(verdicts),
        **{note: sum(v.note == note for v in verdicts) for note in (UNGUARDED, FORGED)},
        "over_limits": sum(v.note in (OUT_OF_TIME, OUT_OF_MEMORY) for v in verdicts),
        **_over_samples(prompts, view, verifier),
    }


def _credits(prompts: Sequence[SampledPrompt], view: str) -> list[float]:
    """Return the credits of the prompts that could be verified."""
    return [c for prompt in prompts if (c := prompt.credit(view)) is not None]


def _over_samples(
    prompts: Sequence[SampledPrompt], view: str, verifier: AnyVerifier
) -> dict[str, Any]:
    """Return pass@k, cons@k and distinct answers, where there are several samples."""
    n = min(len(prompt.samples) for prompt in prompts)
    if n < 2:
        return {}
    statistics: dict[str, Any] = {
        "pass_at_k": {str(k): _pass_at_k(prompts, view, k) for k in powers(n)}
    }
    if (bare := _bare_answer(verifier)) is None:
        return statistics
    valid = [prompt.valid(view) for prompt in prompts]
    answers = [[_meaning(verdict, bare) for verdict in verdicts] for verdicts in valid]
    right = [[verdict.credit == 1 for verdict in verdicts] for verdicts in valid]
    votes = [majority(a, r) for a, r in zip(answers, right, strict=True) if a]
    distinct = [len({answer for answer in a if answer is not None}) for a in answers]
    return {
        **statistics,
        "cons_at_n": _with_interval(votes),
        "distinct_answers": sum(distinct) / len(distinct),
    }


def _bare_answer(verifier: AnyVerifier) -> Callable[[str], str] | None:
    """Return the function that normalizes a verifier's wrong answers; None if it has none."""
    bare = None if isinstance(verifier, Provided) else VERIFIERS[verifier.kind].bare
    return None if bare is None else partial(bare, verifier)


def _meaning(verdict: Verdict, bare: Callable[[str], str]) -> str | None:
    """Return one text for all right answers, and one for all spellings of a wrong answer; None for no answer."""
    if verdict.answer is None:
        return None
    return "right" if verdict.credit == 1 else f"= {bare(verdict.answer)}"


def _pass_at_k(prompts: Sequence[SampledPrompt], view: str, k: int) -> dict[str, Any]:
    """Return pass@k over the prompts of which at least k samples could be verified, and their number."""
    counts = [(len(prompt.valid(view)), prompt.right(view)) for prompt in prompts]
    values = [pass_at_k(n, right, k) for n, right in counts if n >= k]
    return {**_with_interval(values), "prompts": len(values)}


def _with_interval(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean with its interval; null (not 0) where nothing could be verified."""
    if not values:
        return dict.fromkeys(Interval._fields)
    return interval(np.asarray(values, dtype=np.float64))._asdict()


def _strata(prompts: Sequence[SampledPrompt], view: str) -> dict[str, dict[str, Any]]:
    """Return the primary verifier's rate, by the names of the grouping and of the group."""
    by_stratum: dict[str, dict[str, list[SampledPrompt]]] = {}
    for prompt in prompts:
        for grouping, group in prompt.line.strata.items():
            by_stratum.setdefault(grouping, {}).setdefault(group, []).append(prompt)
    return {
        grouping: {
            group: {**_with_interval(credits), "prompts": len(credits)}
            for group, members in sorted(groups.items())
            for credits in [_credits(members, view)]
        }
        for grouping, groups in by_stratum.items()
    }

"""Summarize a Tier5 task's completions and verdicts: rates, pass@k and strata."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.errors import ScoringError
from evaluation.grading.units import floats
from evaluation.metrics.layout import Layout
from evaluation.metrics.pass_at_k import majority, pass_at_k, powers
from evaluation.metrics.rates import TRUNCATED
from evaluation.metrics.variance import Floats, Interval, interval
from evaluation.prefill.caches import DocumentLine
from evaluation.results.kinds import Units, units_of
from evaluation.results.units_file import SOURCES
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import AnyVerifier, Provided
from evaluation.verification.answers import AnswerKind
from evaluation.verification.registry import VERIFIERS
from evaluation.verification.verdicts import OUT_OF_MEMORY, OUT_OF_TIME, UNFINISHED, Verdict


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

    def credit(self, view: str) -> float | None:
        """Return the mean credit over samples; None where the verifier failed on all of them."""
        valid = self.valid(view)
        return math.fsum(verdict.credit or 0 for verdict in valid) / len(valid) if valid else None

    def right(self, view: str) -> int:
        """Return how many samples have the full credit."""
        return sum(verdict.credit == 1 for verdict in self.valid(view))


def prompt_units(prompts: Sequence[SampledPrompt], views: Iterable[str]) -> Units:
    """Return a task's prompts, with pass rates by each verifier and what does not depend on verdicts.

    Args:
        views: The task's verifiers; the first is the primary one.
    """
    tier, (primary, *others) = TIERS["tier5"], views
    lines, samples = [prompt.line for prompt in prompts], [prompt.samples for prompt in prompts]
    columns = {
        tier.headline_by(view, primary): floats(prompt.credit(view) for prompt in prompts)
        for view in (primary, *others)
    }
    columns[TRUNCATED] = floats(
        _share(sample.completion.stop_reason == "length" for sample in drawn) for drawn in samples
    )
    for name in (metric.name for metric in tier.secondary):
        amounts = ([FORMULAS[name](sample.completion) for sample in drawn] for drawn in samples)
        columns[name] = floats(math.fsum(of_prompt) / len(of_prompt) for of_prompt in amounts)
    groupings: dict[str, dict[str, str]] = {}
    for line in lines:
        for by, group in line.strata.items():
            groupings.setdefault(by, {})[line.id] = group
    # A finer grouping than the first one would leave too few prompts in a group.
    strata = [next(iter(line.strata.values()), "") for line in lines]
    clusters = [line.cluster for line in lines if line.cluster is not None]
    layout = Layout(
        len(lines),
        clusters if len(clusters) == len(lines) else None,
        strata if all(line.strata for line in lines) else None,
        [[getattr(line, key) for line in lines] for key in SOURCES],
    )
    return units_of(tier, [line.id for line in lines], layout, columns, groupings=groupings)


FORMULAS: Mapping[str, Callable[[StoredCompletion], float]] = {
    "mean_tokens": lambda completion: completion.tokens,
}
"""A formula for each secondary metric of Tier5, which is its mean over completions."""


def summarize_task(
    prompts: Sequence[SampledPrompt], units: Units, views: Mapping[str, AnyVerifier]
) -> dict[str, Any]:
    """Return a task's entry of `tier5_verified.json`.

    Args:
        units: The prompts as `prompt_units` returns them.
        views: The task's verifiers by name; the first is the primary one.
    """
    tier, primary = TIERS["tier5"], next(iter(views))
    samples = [sample for prompt in prompts for sample in prompt.samples]
    return {
        "verifiers": {
            view: {
                **_pass_rate(prompts, view, units, tier.headline_by(view, primary)),
                **_beside(prompts, view),
                **over_samples(prompts, view, verifier, units.layout),
            }
            for view, verifier in views.items()
        },
        "prompts": len(prompts),
        "samples": len(samples),
        TRUNCATED: units.measured[TRUNCATED].value,
        "empty_rate": _share(not s.completion.text.strip() for s in samples),
        **{metric.key: units.measured[metric.name].value for metric in tier.secondary},
        "unfinished": sum(s.verdicts[primary].note == UNFINISHED for s in samples),
        "strata": _strata(units),
    }


def _share(values: Iterable[bool]) -> float:
    return float(np.mean([*values]))


def _pass_rate(
    prompts: Sequence[SampledPrompt], view: str, units: Units, metric: str
) -> dict[str, Any]:
    """Return a verifier's pass rate with its interval; raise ScoringError where it failed on all samples."""
    if (rate := units.measured.get(metric)) is None:
        why = prompts[0].samples[0].verdicts[view].reason
        raise ScoringError(f"the verifier {view!r} failed on every completion (the first: {why})")
    found = _with_interval(rate.amounts, units.layout)
    return {"pass_rate": found.pop("value"), **found}


def _beside(prompts: Sequence[SampledPrompt], view: str) -> dict[str, Any]:
    """Return what is shown beside a verifier's pass rate, over samples on which it did not fail.

    `format_rate` is the share of samples from which it extracts anything.
    """
    verdicts = [verdict for prompt in prompts for verdict in prompt.valid(view)]
    weight = math.fsum(verdict.weight for verdict in verdicts)
    weighted = math.fsum(v.weight * (v.credit or 0) for v in verdicts)
    return {
        "weighted_rate": weighted / weight if weight else None,
        "format_rate": _share(verdict.answer is not None for verdict in verdicts),
        "errors": sum(len(prompt.samples) for prompt in prompts) - len(verdicts),
        "over_limits": sum(v.note in (OUT_OF_TIME, OUT_OF_MEMORY) for v in verdicts),
    }


def over_samples(
    prompts: Sequence[SampledPrompt], view: str, verifier: AnyVerifier, layout: Layout
) -> dict[str, Any]:
    """Return pass@k and cons@n, where there are several samples."""
    n = min(len(prompt.samples) for prompt in prompts)
    if n < 2:
        return {}
    found = {"pass_at_k": {str(k): _pass_at_k(prompts, view, k, layout) for k in powers(n)}}
    kind = None if isinstance(verifier, Provided) else VERIFIERS[verifier.kind]
    if not isinstance(kind, AnswerKind):  # such as programs, of which no two are the same answer
        return found
    bare = kind.bare

    def vote(verdict: Verdict) -> str | None:
        """Return one text for all right answers, and one for all spellings of a wrong one."""
        if verdict.answer is None:
            return None
        return "right" if verdict.credit == 1 else f"= {bare(verifier, verdict.answer)}"

    valid = [prompt.valid(view) for prompt in prompts]
    credits = [
        majority([*map(vote, verdicts)], [verdict.credit == 1 for verdict in verdicts])
        if verdicts
        else math.nan
        for verdicts in valid
    ]
    return {**found, "cons_at_n": _with_interval(credits, layout)}


def _pass_at_k(
    prompts: Sequence[SampledPrompt], view: str, k: int, layout: Layout
) -> dict[str, Any]:
    """Return pass@k over the prompts of which at least k samples could be verified, and their number."""
    counts = [(len(prompt.valid(view)), prompt.right(view)) for prompt in prompts]
    values = [pass_at_k(n, right, k) if n >= k else math.nan for n, right in counts]
    return {**_with_interval(values, layout), "prompts": sum(map(math.isfinite, values))}


def _with_interval(values: Sequence[float] | Floats, layout: Layout) -> dict[str, Any]:
    """Return the mean over the prompts that have a value, with its interval; null (not 0) where none has.

    Args:
        values: One for each prompt; NaN where it could not be verified.
        layout: How all prompts depend on one another.
    """
    credit = np.asarray(values, dtype=np.float64)
    is_known = np.isfinite(credit)
    if not is_known.any():
        return dict.fromkeys(Interval._fields)
    return interval(credit[is_known], layout.only(is_known).groups)._asdict()


def _strata(units: Units) -> dict[str, dict[str, Any]]:
    """Return the primary verifier's rate, by the names of the grouping and of the group."""
    rate = units.measured[TIERS["tier5"].headline]
    strata: dict[str, dict[str, Any]] = {}
    for grouping, group_of in units.groupings.items():
        groups = np.array([group_of.get(id, "") for id in units.ids])
        strata[grouping] = {
            group: {
                **_with_interval(rate.amounts[is_in], units.layout.only(is_in)),
                "prompts": int(rate.is_judged[is_in].sum()),
            }
            for group in sorted({*group_of.values()})
            for is_in in [groups == group]
        }
    return strata

"""Summarize a Tier5 task's completions and verdicts: rates, pass@k and strata."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.errors import ScoringError
from evaluation.grading.units import prompt_units
from evaluation.metrics.layout import Layout
from evaluation.metrics.pass_at_k import majority, pass_at_k, powers
from evaluation.metrics.rates import TRUNCATED
from evaluation.metrics.value_interval import Interval, interval
from evaluation.metrics.variance import Floats
from evaluation.prefill.caches import DocumentLine
from evaluation.results.columns import COMPLETED, arrow_schema
from evaluation.results.kinds import Units
from evaluation.scoring.stored_completions import StoredCompletion
from evaluation.settings.tiers import TIERS
from evaluation.settings.verifiers import AnyVerifier, Provided
from evaluation.verification.registry import VERIFIERS
from evaluation.verification.sandbox.model import FORGED, UNGUARDED
from evaluation.verification.verdicts import OUT_OF_MEMORY, OUT_OF_TIME, UNFINISHED, Verdict

_PROMPTS = arrow_schema(COMPLETED[1:])  # the first one names the task


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


def prompts_by_verifier(
    prompts: Sequence[SampledPrompt], views: Iterable[str]
) -> tuple[pa.Table, Units]:
    """Return each prompt's results by each verifier: as rows of `results.columns.COMPLETED`, and as units.

    Args:
        views: The task's verifiers; the first is the primary one.
    """
    views = list(views)
    rows = [_prompt_row(prompt, view) for prompt in prompts for view in views]
    units = prompt_units(TIERS["tier5"], rows, views, views[0])
    return pa.Table.from_pylist(rows, schema=_PROMPTS), units


def _prompt_row(prompt: SampledPrompt, view: str) -> dict[str, Any]:
    valid = prompt.valid(view)
    return {
        "id": prompt.line.id,
        "verifier": view,
        "n": len(valid),
        "correct": prompt.right(view),
        "pass_rate": prompt.credit(view),
        "weight": sum(verdict.weight for verdict in valid) / len(valid) if valid else 0.0,
        "truncated": sum(s.completion.stop_reason == "length" for s in prompt.samples),
        "errors": len(prompt.samples) - len(valid),
        "strata": json.dumps(prompt.line.strata),
        "cluster": prompt.line.cluster,
        "question": prompt.line.question,
        "row": prompt.line.row,
        **_measured(prompt.samples),
    }


def summarize_task(
    prompts: Sequence[SampledPrompt], units: Units, views: Mapping[str, AnyVerifier]
) -> dict[str, Any]:
    """Return a task's entry of `tier5_verified.json`.

    Args:
        units: The prompts as `prompts_by_verifier` returns them.
        views: The task's verifiers by name; the first is the primary one.
    """
    tier, primary = TIERS["tier5"], next(iter(views))
    samples = [sample for prompt in prompts for sample in prompt.samples]
    ours = [view for view, verifier in views.items() if not verifier.IS_UPSTREAM]
    others = ours or list(views)
    return {
        "verifiers": {
            view: {
                **_pass_rate(prompts, view, units, tier.headline_by(view, primary)),
                **summarize_view(prompts, view, others),
                **over_samples(prompts, view, verifier, units.layout),
            }
            for view, verifier in views.items()
        },
        "prompts": len(prompts),
        "samples": len(samples),
        TRUNCATED: units.measured[TRUNCATED].value,
        "empty_rate": _share(not s.completion.text.strip() for s in samples),
        **{metric.key: units.measured[metric.name].value for metric in tier.secondary},
        "unfinished": sum(_is_unfinished(sample) for sample in samples),
        "right_by_any_rate": _right_by_any_rate(samples, views),
        "strata": _strata(units),
    }


FORMULAS: Mapping[str, Callable[[StoredCompletion], float]] = {
    "mean_tokens": lambda completion: completion.tokens,
}
"""A formula for each secondary metric of Tier5, which is its mean over completions."""


def _measured(samples: Sequence[VerifiedSample]) -> dict[str, float]:
    """Return the secondary metrics of a prompt's samples, which need no verdicts."""
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


def _pass_rate(
    prompts: Sequence[SampledPrompt], view: str, units: Units, metric: str
) -> dict[str, Any]:
    """Return a verifier's pass rate with its interval; raise ScoringError where it failed on all samples."""
    if (rate := units.measured.get(metric)) is None:
        why = prompts[0].samples[0].verdicts[view].reason
        raise ScoringError(f"the verifier {view!r} failed on every completion (the first: {why})")
    found = _with_interval(rate.amounts, units.layout)
    return {"pass_rate": found.pop("value"), **found}


def summarize_view(
    prompts: Sequence[SampledPrompt], view: str, others: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return what a verifier's verdicts show beside its pass rate, over samples on which it did not fail.

    Args:
        others: Verifiers whose right answers show what this one does not find; all if not given.
    """
    verdicts = [verdict for prompt in prompts for verdict in prompt.valid(view)]
    total = sum(len(prompt.samples) for prompt in prompts)
    others = others or list(prompts[0].samples[0].verdicts)
    weight = math.fsum(verdict.weight for verdict in verdicts)
    weighted = math.fsum(v.weight * (v.credit or 0) for v in verdicts)
    return {
        "weighted_rate": weighted / weight if weight else None,
        "format_rate": _share(verdict.answer is not None for verdict in verdicts),
        "right_but_format_rate": sum(_lacks_form(p, view, others) for p in prompts) / len(verdicts),
        "errors": total - len(verdicts),
        **{note: sum(v.note == note for v in verdicts) for note in (UNGUARDED, FORGED)},
        "over_limits": sum(v.note in (OUT_OF_TIME, OUT_OF_MEMORY) for v in verdicts),
    }


def over_samples(
    prompts: Sequence[SampledPrompt], view: str, verifier: AnyVerifier, layout: Layout
) -> dict[str, Any]:
    """Return pass@k, cons@k and distinct answers, where there are several samples."""
    n = min(len(prompt.samples) for prompt in prompts)
    if n < 2:
        return {}
    statistics: dict[str, Any] = {
        "pass_at_k": {str(k): _pass_at_k(prompts, view, k, layout) for k in powers(n)}
    }
    if (bare := _bare_answer(verifier)) is None:
        return statistics
    valid = [prompt.valid(view) for prompt in prompts]
    answers = [[_meaning(verdict, bare) for verdict in verdicts] for verdicts in valid]
    right = [[verdict.credit == 1 for verdict in verdicts] for verdicts in valid]
    votes = [majority(a, r) if a else math.nan for a, r in zip(answers, right, strict=True)]
    distinct = [len({answer for answer in a if answer is not None}) for a in answers]
    return {
        **statistics,
        "cons_at_n": _with_interval(votes, layout),
        "distinct_answers": sum(distinct) / len(distinct),
    }


def _bare_answer(verifier: AnyVerifier) -> Callable[[str], str] | None:
    """Return the function that normalizes a verifier's wrong answers; None if it has none."""
    bare = None if isinstance(verifier, Provided) else VERIFIERS[verifier.kind].bare
    return None if bare is None else partial(bare, verifier)


def _meaning(verdict: Verdict, bare: Callable[[str], str]) -> str | None:
    """Return one text for all right answers, and one for all spellings of a wrong one; None for no answer."""
    if verdict.answer is None:
        return None
    return "right" if verdict.credit == 1 else f"= {bare(verdict.answer)}"


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
    return interval(credit[is_known], layout.only(is_known))._asdict()


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

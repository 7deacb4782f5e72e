"""Tables of verified answers: every verifier's rates side by side, and how answers were generated."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from evaluation.reporting.pages.page import Table, cells_of
from evaluation.results.delta_rows import GroupDelta
from evaluation.results.deltas_file import StepDeltas
from evaluation.results.read import Results
from evaluation.results.verified_files import (
    GenerationEntry,
    OtherEngine,
    VerifierRates,
    WindowEntry,
)
from evaluation.settings.metric import Metric
from evaluation.settings.tiers import TIERS

Sides = Mapping[str, Results]
"""Results by step, and the bridge's under `bridge`."""


def verified_tables(sides: Sides, deltas: Mapping[int, StepDeltas]) -> list[Table]:
    """Return the tables of verified answers: rates, two of groups such as levels or subjects, and settings.

    Args:
        sides: Results by step, and the bridge's under `bridge`.
    """
    groups = ("step", "task", "by", "group", "prompts")
    settings = dict.fromkeys((name, *_settings(entry)) for _, name, entry in _entries(sides))
    return [
        Table("Verified answers", ("step", "task", "verifier", *RATES), list(_rates(sides))),
        Table(
            "Verified answers by group", (*groups, "pass rate [95 %]"), list(_group_rates(sides))
        ),
        Table(
            "Verified answers by group, against the bridge",
            (*groups, *CHANGES),
            [
                (str(step), row.item, row.by, row.group, str(row.prompts), *cells_of(CHANGES, row))
                for step, content in deltas.items()
                for row in content.groups
            ],
        ),
        Table("How completions were generated", ("task", *SETTINGS), list(settings)),
    ]


def _entries(sides: Sides) -> Iterator[tuple[str, str, GenerationEntry]]:
    """Yield step, task, and the task's entry in its file."""
    for step, results in sides.items():
        for tier in results.tiers.values():
            for name, item in tier.items.items():
                if isinstance(item.entry, GenerationEntry):
                    yield step, name, item.entry


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"


def _rate(share: float | None, low: float | None, high: float | None) -> str:
    return _percent(share) + ("" if low is None else f" [{_percent(low)}, {_percent(high)}]")


def _by_instruction(rates: VerifierRates) -> str:
    """Return what IFEval calls `inst_level_*_acc`, where that is another number."""
    share = _percent(rates.weighted_rate)
    return "–" if share == _percent(rates.pass_rate) else share


def _of_completions(metric: Metric, view: VerifierRates, task: GenerationEntry) -> str:
    """Return a metric that no verifier decides."""
    del view
    value = getattr(task, metric.key)
    return "–" if value is None else metric.level(value)


RATES: Mapping[str, Callable[[VerifierRates, GenerationEntry], str]] = {
    "pass rate [95 %]": lambda view, _: _rate(view.pass_rate, view.low, view.high),
    "extracts an answer": lambda view, _: _percent(view.format_rate),
    "by instruction": lambda view, _: _by_instruction(view),
    "pass@k": lambda view, _: (
        ", ".join(f"{k}: {_percent(one.value)}" for k, one in view.pass_at_k.items()) or "–"
    ),
    "majority": lambda view, _: _percent(view.cons_at_n.value if view.cons_at_n else None),
    "errors": lambda view, task: f"{view.errors} of {task.samples}",
    "empty": lambda _, task: _percent(task.empty_rate),
    **{
        metric.words: partial(_of_completions, metric)
        for metric in TIERS["tier5"].metrics
        if metric.key in GenerationEntry.model_fields
    },
}


def _rates(sides: Sides) -> Iterator[tuple[str, ...]]:
    """Yield a row per step, task and verifier, the primary verifier first."""
    for step, name, entry in _entries(sides):
        for view in sorted(entry.verifiers, key=lambda verifier: verifier != entry.primary):
            yield step, name, view, *cells_of(RATES, entry.verifiers[view], entry)


def _group_rates(sides: Sides) -> Iterator[tuple[str, ...]]:
    for step, name, entry in _entries(sides):
        for grouping, groups in entry.strata.items():
            for group, rates in groups.items():
                rate = _rate(rates.value, rates.low, rates.high)
                yield step, name, grouping, group, str(rates.prompts), rate


CHANGES: Mapping[str, Callable[[GroupDelta], str]] = {
    "before": lambda row: _percent(row.bridge_value),
    "after": lambda row: _percent(row.value),
    "Δ [95 %]": lambda row: TIERS[row.tier].head.change(row.delta, row.low, row.high),
    "p (Holm)": lambda row: "–" if row.p_holm is None else f"{row.p_holm:.2g}",
    "minimum detectable": lambda row: (
        "–" if row.mde is None else TIERS[row.tier].head.change(row.mde, sign="")
    ),
    "significant": lambda row: row.flag or "–",
}

SETTINGS = (
    *("sampling", "tokens at most", "window", "stops", "verifiers"),
    *("left out", "shortened", "written by"),
)


def _settings(entry: GenerationEntry) -> tuple[str, ...]:
    decoding = entry.decoding
    drawn = decoding.get("sampling") or {}
    is_greedy = not drawn.get("temperature")
    kinds = {name: view.get("kind") for name, view in entry.views.items() if isinstance(view, dict)}
    views = sorted(kinds, key=lambda name: name != entry.primary)
    return (
        "greedy" if is_greedy else ", ".join(f"{k} {v}" for k, v in drawn.items()),
        str(decoding.get("max_new_tokens", "–")),
        _window(entry.window),
        ", ".join(map(repr, decoding.get("stop") or ())) or "EOS and end of turn only",
        ", ".join(f"{name} ({kinds[name]})" for name in views),
        ", ".join(entry.too_long) or "–",
        ", ".join(entry.shortened) or "–",
        _engine(entry.engine),
    )


def _window(window: WindowEntry | None) -> str:
    """Return the window's tokens, marked where they exceed those of a training sequence."""
    if window is None:
        return "–"
    is_longer = window.trained is not None and window.tokens > window.trained
    return f"{window.tokens:,}" + (f" (trained on {window.trained:,})" if is_longer else "")


def _engine(engine: OtherEngine | None) -> str:
    if engine is None:
        return "built-in engine"
    if engine.imported is not None:
        return f"{engine.title}, imported from {engine.imported}"
    agree = f"{engine.equal} of {engine.asked} greedy answers as by the built-in engine"
    return f"{engine.title}, {agree}"

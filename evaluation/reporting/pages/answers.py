"""Verified answers in tables: every verifier's rates side by side, and how they were asked for."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evaluation.results.answer_files import GenerationEntry, OtherEngine, Told, VerifierRates
from evaluation.results.deltas_file import GroupDelta, StepDeltas
from evaluation.results.read import Results


def _entries(sides: Mapping[str, Results]) -> Iterator[tuple[str, str, GenerationEntry]]:
    """Step, task, and what its file says of it."""
    for step, results in sides.items():
        for tier in results.tiers.values():
            for name, item in tier.items.items():
                if isinstance(item.entry, GenerationEntry):
                    yield step, name, item.entry


RATES = (
    *("step", "task", "verifier", "pass rate [95 %]", "by instruction", "has its form"),
    *(
        "right, not in its form",
        "pass@k",
        "majority",
        "unguarded",
        "forged",
        "errors",
        "truncated",
        "empty",
        "tokens",
    ),
)


def rate_rows(sides: Mapping[str, Results]) -> list[tuple[str, ...]]:
    """A row per step, task and verifier, the primary verifier first."""
    rows = []
    for step, name, entry in _entries(sides):
        for view in sorted(entry.verifiers, key=lambda one: one != entry.primary):
            rows.append((step, name, view, *_view(entry.verifiers[view], entry)))
    return rows


def _view(rates: VerifierRates, entry: GenerationEntry) -> tuple[str, ...]:
    bounds = "" if rates.low is None else f" [{_percent(rates.low)}, {_percent(rates.high)}]"
    return (
        f"{_percent(rates.pass_rate)}{bounds}",
        _by_instruction(rates),
        _percent(rates.format_rate),
        _percent(rates.right_but_format_rate),
        _at_k(rates.pass_at_k),
        "–" if rates.cons_at_n is None else _percent(rates.cons_at_n.value),
        *(str(count) if count else "–" for count in (rates.unguarded, rates.forged)),
        f"{rates.errors} of {entry.samples}",
        _percent(entry.truncated_rate),
        _percent(entry.empty_rate),
        "–" if entry.mean_tokens is None else f"{entry.mean_tokens:.0f}",
    )


def _by_instruction(rates: VerifierRates) -> str:
    """As IFEval's `inst_level_*_acc` counts, where that is another number."""
    told = _percent(rates.weighted_rate)
    return "–" if told == _percent(rates.pass_rate) else told


def _at_k(found: Mapping[str, Told]) -> str:
    return ", ".join(f"{k}: {_percent(one.value)}" for k, one in found.items()) or "–"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


GROUPS = ("step", "task", "by", "group", "prompts", "pass rate [95 %]")


def group_rows(sides: Mapping[str, Results]) -> list[tuple[str, ...]]:
    """A row per step, task and group of its strata, such as a level or a subject."""
    return [
        (step, name, grouping, group, str(told.prompts), _told(told))
        for step, name, entry in _entries(sides)
        for grouping, groups in entry.strata.items()
        for group, told in groups.items()
    ]


def _told(one: Told) -> str:
    bounds = "" if one.low is None else f" [{_percent(one.low)}, {_percent(one.high)}]"
    return f"{_percent(one.value)}{bounds}"


CHANGES = (
    *("step", "task", "by", "group", "prompts", "before", "after", "Δ [95 %]", "p (Holm)"),
    *("minimum detectable", "significant"),
)


def change_rows(deltas: Mapping[int, StepDeltas]) -> list[tuple[str, ...]]:
    """A row per step, task and group: its rate beside the bridge's."""
    return [
        (str(step), row.item, row.by, row.group, str(row.prompts), *_change(row))
        for step, content in deltas.items()
        for row in content.groups
    ]


def _change(row: GroupDelta) -> tuple[str, ...]:
    points = f"{100 * row.delta:+.1f}"
    if row.low is not None and row.high is not None:
        points += f" [{100 * row.low:+.1f}, {100 * row.high:+.1f}]"
    return (
        _percent(row.bridge_value),
        _percent(row.value),
        f"{points} points",
        "–" if row.p_holm is None else f"{row.p_holm:.2g}",
        "–" if row.mde is None else f"{100 * row.mde:.1f} points",
        row.flag or "–",
    )


ASKED = ("task", "sampling", "tokens at most", "stops", "verifiers", "left out", "written by")


def asked_rows(sides: Mapping[str, Results]) -> list[tuple[str, ...]]:
    """A row per task; steps that were asked in the same way share it."""
    rows = (
        (
            name,
            *_decoding(entry.decoding),
            _verifiers(entry),
            ", ".join(entry.too_long) or "–",
            _engine(entry.engine),
        )
        for _, name, entry in _entries(sides)
    )
    return list(dict.fromkeys(rows))


def _engine(engine: OtherEngine | None) -> str:
    if engine is None:
        return "own engine"
    agree = f"{engine.equal} of {engine.asked} greedy answers as by the own engine"
    return f"{engine.name} {engine.version}, {agree}"


def _decoding(decoding: Mapping[str, Any]) -> tuple[str, str, str]:
    drawn = decoding.get("sampling") or {}
    is_greedy = not drawn.get("temperature")
    sampling = "greedy" if is_greedy else ", ".join(f"{k} {v}" for k, v in drawn.items())
    stops: Iterable[str] = decoding.get("stop") or ()
    told = ", ".join(map(repr, stops)) or "EOS and end of turn only"
    return sampling, str(decoding.get("max_new_tokens", "–")), told


def _verifiers(entry: GenerationEntry) -> str:
    kinds = {name: view.get("kind") for name, view in entry.views.items() if isinstance(view, dict)}
    return ", ".join(
        f"{name} ({kinds[name]})" for name in sorted(kinds, key=lambda n: n != entry.primary)
    )

"""What a reader needs to believe the numbers: protocols, data, losses on the way, speed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.bridge.results import Header, Results
from evaluation.reporting.stage import StageResults


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def trust_tables(found: StageResults) -> list[Table]:
    """Tables in words; those with nothing in them are left out."""
    sides = {str(step): scored.results for step, scored in found.steps.items()}
    if found.bridge is not None:
        sides["bridge"] = found.bridge.results
    tables = [
        _jobs(sides),
        _items(sides),
        _templates(sides),
        _disagreements(found),
    ]
    return [table for table in tables if table.rows]


def _text(value: Any) -> str:
    return "–" if value is None else str(value)


def _jobs(sides: Mapping[str, Results]) -> Table:
    columns = (
        "step", "tier", "protocol", "tokenizer", "sequence", "device", "dtype", "seconds",
        "tokens/s", "items", "checkpoint",
    )  # fmt: skip
    rows = [
        (step, tier, *_job(header))
        for step, results in sides.items()
        for tier, header in results.headers.items()
    ]
    return Table("Jobs", columns, rows)


def _job(header: Header) -> tuple[str, ...]:
    content = header.content
    named = content.get("tokenizer", {}).get("name")
    return (
        header.protocol,
        f"{named} ({header.tokenizer})",
        str(header.sequence_length),
        _text(content.get("device")),
        _text(content.get("dtype")),
        _text(content.get("seconds")),
        _text(content.get("tokens_per_second")),
        _count(content.get("items")),
        f"{header.checkpoint} ({header.identity})",
    )


def _count(items: Any) -> str:
    """Used of asked, with what was left out and why."""
    if not isinstance(items, dict) or "used" not in items:
        return "–"
    left = "; ".join(f"{n} left out: {why}" for why, n in (items.get("left_out") or {}).items())
    return f"{items['used']} of {items.get('asked', '?')}" + (f" ({left})" if left else "")


def _items(sides: Mapping[str, Results]) -> Table:
    columns = ("item", "data", "items used", "tokens scored", "ties", "truncated", "steps")
    seen: dict[tuple[str, ...], list[str]] = {}
    for step, results in sides.items():
        for row in _item_rows(results):
            seen.setdefault(row, []).append(step)
    return Table("Data", columns, [(*row, ", ".join(steps)) for row, steps in seen.items()])


def _item_rows(results: Results) -> Iterable[tuple[str, ...]]:
    """One row an item; equal rows of several steps are shown once."""
    for name, one in results.slices.items():
        data, used = _text(one.entry.get("data")), _count(one.entry.get("items"))
        yield name, data, used, _text(one.entry.get("tokens")), "–", "–"
    for name, task in results.tasks.items():
        data, used = _text(task.entry.get("data")), _count(task.entry.get("items"))
        ties, cut = _text(task.entry.get("ties")), _text(task.entry.get("truncated_contexts"))
        yield name, data, used, "–", ties, cut
    if results.probes is not None:
        content = results.headers["tier4"].content
        rate = results.probes.rates.get("truncated_rate")
        cut = "–" if rate is None else f"{100 * rate:.1f} %"
        yield "probes", _text(content.get("data")), _count(content.get("items")), "–", "–", cut


def _templates(sides: Mapping[str, Results]) -> Table:
    columns = ("task", "context", "continuation", "primary", "source")
    found: dict[tuple[str, ...], None] = {}
    for results in sides.values():
        for name, result in results.tasks.items():
            task = result.entry.get("task")
            if isinstance(task, dict):
                source = f"{_text(task.get('dataset'))} @ {_text(task.get('revision'))}"
                row = (name, *(_text(task.get(key)) for key in ("context", "continuation")))
                found[(*row, _text(result.primary), source)] = None
    return Table("Templates", columns, list(found))


def _disagreements(found: StageResults) -> Table:
    """Tasks whose normalizations move in opposite directions, for sure by each one's interval."""
    columns = ("step", "task", "up by", "down by")
    rows: list[tuple[str, ...]] = []
    for step, content in found.deltas.items():
        moved: dict[str, tuple[list[str], list[str]]] = {}
        for delta in content["deltas"]:
            if delta["tier"] != "tier3" or delta["low"] is None:
                continue
            up, down = moved.setdefault(delta["item"], ([], []))
            name = f"{delta['metric'].removeprefix('delta_')} {delta['delta']:+.4f}"
            up += [name] if delta["low"] > 0 else []
            down += [name] if delta["high"] < 0 else []
        rows += [
            (str(step), item, ", ".join(up), ", ".join(down))
            for item, (up, down) in moved.items()
            if up and down
        ]
    return Table("Metrics that disagree", columns, rows)

"""What a reader needs to believe the numbers: protocols, data, losses on the way, speed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.bridge.results import Header, Results
from evaluation.reporting.flips.moved import scored_cache
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.settings.plan import StagePlan


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""


def provenance_tables(found: StageResults) -> list[Table]:
    """Tables in words; those with nothing in them are left out."""
    sides = {str(step): scored.results for step, scored in found.steps.items()}
    if found.bridge is not None:
        sides["bridge"] = found.bridge.results
    tables = [_disagreements(found), _items(found.plan, sides), _templates(sides), _jobs(sides)]
    return [table for table in tables if table.rows or table.note]


def _text(value: Any) -> str:
    return "–" if value is None else str(value)


def _jobs(sides: Mapping[str, Results]) -> Table:
    columns = (
        "step", "tier", "device", "dtype", "seconds", "tokens/s", "items", "protocol", "tokenizer",
        "sequence", "checkpoint",
    )  # fmt: skip
    rows = [
        (step, tier, *_job(header))
        for step, results in sides.items()
        for tier, header in results.headers.items()
    ]
    known = [
        h.content.get("seconds") for results in sides.values() for h in results.headers.values()
    ]
    seconds = sum(value for value in known if isinstance(value, int | float))
    note = f"{seconds:.0f} seconds of the device, spent wherever a score was computed first."
    return Table("Jobs", columns, rows, note if rows else "")


def _job(header: Header) -> tuple[str, ...]:
    content = header.content
    named = content.get("tokenizer", {}).get("name")
    return (
        _text(content.get("device")),
        _text(content.get("dtype")),
        _text(content.get("seconds")),
        _text(content.get("tokens_per_second")),
        _count(content.get("items")),
        header.protocol,
        f"{named} ({header.tokenizer})",
        str(header.sequence_length),
        f"{header.checkpoint} ({header.identity})",
    )


def _count(items: Any) -> str:
    """Used of asked, with what was left out and why."""
    if not isinstance(items, dict) or "used" not in items:
        return "–"
    left = "; ".join(f"{n} left out: {why}" for why, n in (items.get("left_out") or {}).items())
    return f"{items['used']} of {items.get('asked', '?')}" + (f" ({left})" if left else "")


def _items(plan: StagePlan, sides: Mapping[str, Results]) -> Table:
    columns = (
        *("item", "source", "data", "items used"),
        *("tokens scored", "ties", "truncated", "steps"),
    )
    seen: dict[tuple[str, ...], list[str]] = {}
    for step, results in sides.items():
        for row in _item_rows(plan, results):
            seen.setdefault(row, []).append(step)
    rows = [(*row, _steps(steps, len(sides))) for row, steps in seen.items()]
    return Table("What was scored", columns, rows)


def _steps(steps: list[str], of: int) -> str:
    return "all" if len(steps) == of else ", ".join(steps)


def _item_rows(plan: StagePlan, results: Results) -> Iterable[tuple[str, ...]]:
    """One row an item; equal rows of several steps are shown once."""
    for name, one in results.slices.items():
        source = _source(plan.suite.slices.get(name), plan.slice_folder(name), one.data)
        data, used = _text(one.entry.get("data")), _count(one.entry.get("items"))
        yield name, source, data, used, _text(one.entry.get("tokens")), "–", "–"
    for name, task in results.tasks.items():
        source = _source(plan.suite.tasks.get(name), plan.task_folder(name), task.data)
        data, used = _text(task.entry.get("data")), _count(task.entry.get("items"))
        ties, cut = _text(task.entry.get("ties")), _text(task.entry.get("truncated_contexts"))
        yield name, source, data, used, "–", ties, cut
    if results.probes is not None:
        content = results.headers["tier4"].content
        rate = results.probes.rates.get("truncated_rate")
        cut = "–" if rate is None else f"{100 * rate:.1f} % of answers"
        used = _count(content.get("items"))
        yield "probes", "the suite", _text(content.get("data")), used, "–", "–", cut


def _source(item: Any, folder: Path, checksum: Any) -> str:
    """Data set, split and revision: the one that was fetched, if the cache still tells."""
    if item is None:
        return "no longer in the suites"
    meta = scored_cache(folder, checksum)
    fetched = {} if meta is None else meta.get("source") or {}
    revision = fetched.get("resolved") or item.revision
    name = " ".join(filter(None, (item.dataset or ", ".join(item.files), item.config, item.split)))
    if revision and re.fullmatch(r"[0-9a-f]{40}", revision):
        revision = revision[:12]
    name += f" @ {revision}" if revision else " (no revision pinned)"
    states = fetched.get("state") or []
    is_mirror = any(isinstance(one, dict) and one.get("kind") == "mirror" for one in states)
    return f"{name}, from a mirror" if is_mirror else name


def _templates(sides: Mapping[str, Results]) -> Table:
    columns = ("task", "context", "continuation", "shots", "primary")
    found: dict[tuple[str, ...], None] = {}
    for results in sides.values():
        for name, result in results.tasks.items():
            task = result.entry.get("task")
            if isinstance(task, dict):
                row = (name, *(_text(task.get(key)) for key in ("context", "continuation")))
                found[(*row, _text(task.get("num_fewshot")), _text(result.primary))] = None
        if results.probes is not None:
            content = results.headers["tier4"].content
            stops = ", ".join(map(repr, content.get("stop") or [])) or "EOS and end of turn only"
            found["probes", _text(content.get("chat_template")), f"stops: {stops}", "–", "–"] = None
    return Table("Templates", columns, list(found))


def _disagreements(found: StageResults) -> Table:
    """Tasks whose normalizations move in opposite directions, by each one's 95 % interval."""
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
    note = "" if rows or not found.deltas else "No task's metrics move in opposite directions."
    return Table("Metrics that disagree about the direction", columns, rows, note)

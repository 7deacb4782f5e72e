"""Tables that show where numbers come from: protocols, data, left-out items, speed."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluation.reporting.flips.items import scored_cache
from evaluation.reporting.pages.page import Table, cells_of
from evaluation.reporting.pages.provenance_header import packages_in_words
from evaluation.reporting.pages.verified_answers import verified_tables
from evaluation.reporting.tables.stage_results import StageResults
from evaluation.results.delta_notes import notes_by_steps
from evaluation.results.probe_files import Tier4File
from evaluation.results.read import Results, TierResults
from evaluation.results.stage_files import QualityRow, TaskQuality
from evaluation.results.tier_files import Counts, TierFile
from evaluation.settings.measured import TRUNCATED
from evaluation.settings.metric import Metric
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderChoices, ProviderTask
from evaluation.settings.tiers import TIERS


def provenance_tables(stage: StageResults) -> list[Table]:
    """Return the tables of sources, templates, notes and verified answers that have anything in them."""
    sides = _sides(stage)
    tables = [
        Table("Comparison", ("note", "steps"), [*notes_by_steps(stage.deltas)]),
        _disagreements(stage),
        _items(stage.plan, sides),
        _templates(sides),
        *verified_tables(sides, stage.deltas),
    ]
    return [table for table in tables if table.rows or table.note]


def _sides(stage: StageResults) -> dict[str, Results]:
    sides = {str(step): scored.results for step, scored in stage.steps.items()}
    return sides if stage.bridge is None else {**sides, "bridge": stage.bridge.results}


def _text(value: Any, form: str = "") -> str:
    return "–" if value is None else f"{value:{form}}"


def jobs_table(stage: StageResults) -> Table:
    """Return what every checkpoint was scored with, a row for each tier of it."""
    sides = _sides(stage)
    called = {str(step): name for step, name in stage.plan.stage.names.items()}
    rows = [
        (f"{step} ({called[step]})" if step in called else step, name, *cells_of(JOB, tier.file))
        for step, results in sides.items()
        for name, tier in results.tiers.items()
    ]
    files = [tier.file for results in sides.values() for tier in results.tiers.values()]
    seconds = sum(file.seconds or 0.0 for file in files)
    note = f"{seconds:.0f} seconds of the device, spent wherever a score was computed first."
    numbers = frozenset({"step", "seconds", "tokens/s", "sequence"})
    return Table("Jobs", ("step", "tier", *JOB), rows, note if rows else "", numbers)


def _count(items: Any) -> str:
    """Return how many of the requested items were used, and why others were left out."""
    if not isinstance(items, Counts):
        return "–"
    left = "; ".join(f"{n} left out: {why}" for why, n in items.left_out.items())
    return f"{items.used} of {items.asked}" + (f" ({left})" if left else "")


def _device(file: TierFile) -> str:
    """Name the GPU, and mark where layers ran without being compiled, which explains the speed."""
    plain = " (layers not compiled)" if "plain" in (file.layers or ()) else ""
    return f"{_text(file.gpu or file.device)}{plain}"


JOB: Mapping[str, Callable[[TierFile], str]] = {
    "device": _device,
    "dtype": lambda file: _text(file.dtype),
    "row tokens": lambda file: ", ".join(map(str, file.row_tokens)) or "–",
    "seconds": lambda file: _text(file.seconds),
    "tokens/s": lambda file: _text(file.tokens_per_second),
    "items": lambda file: _count(file.items),
    "protocol": lambda file: file.protocol,
    "tokenizer": lambda file: f"{file.tokenizer.name} ({file.tokenizer.identity})",
    "sequence": lambda file: str(file.sequence_length),
    "checkpoint": lambda file: f"{file.checkpoint} ({file.checkpoint_identity})",
    "packages": lambda file: packages_in_words(file.packages) or "–",
}


def _items(plan: StagePlan, sides: Mapping[str, Results]) -> Table:
    columns = (
        *("item", "source", "data", "items used"),
        *("tokens scored", "ties", "truncated", "steps"),
    )
    seen: dict[tuple[str, ...], list[str]] = {}
    for step, results in sides.items():
        for row in _item_rows(plan, results):
            seen.setdefault(row, []).append(step)
    rows = [
        (*row, "all" if len(steps) == len(sides) else ", ".join(steps))
        for row, steps in seen.items()
    ]
    return Table("What was scored", columns, rows)


def _item_rows(plan: StagePlan, results: Results) -> Iterable[tuple[str, ...]]:
    """Yield one row an item; equal rows of several steps are shown once."""
    for tier in results.tiers.values():
        if tier.tier.rates:
            yield _rates_row(tier)
            continue
        items = getattr(plan.suite, tier.tier.section)
        for name, item in tier.items.items():
            is_alone, entry = not tier.tier.cache.per_stage, item.entry
            folder = plan.cache_folder(tier.tier.name, name) if is_alone else None
            source = _source(items.get(name), folder, item.same.get("data"))
            known = ("tokens", "ties", "truncated_contexts")
            rest = (_text(getattr(entry, key, None)) for key in known)
            data, used = getattr(entry, "data", None), getattr(entry, "items", None)
            yield name, source, _text(data), _count(used), *rest


def _rates_row(tier_results: TierResults) -> tuple[str, ...]:
    """Return one row for all units of a tier of rates, as they come from the suite itself."""
    rate = tier_results.overall.values.get(TRUNCATED.name) if tier_results.overall else None
    cut = "–" if rate is None else f"{100 * rate:.1f} % of answers"
    data, used = _text(getattr(tier_results.file, "data", None)), _count(tier_results.file.items)
    return tier_results.tier.section, "the suite", data, used, "–", "–", cut


def _source(item: Any, folder: Path | None, checksum: Any) -> str:
    """Return the data set, split and revision, that which was fetched if the cache still has it."""
    if item is None:
        return "no longer in the suites"
    if isinstance(item, ProviderTask | ProviderChoices):
        return f"{item.task} of {item.provider} {item.version}"
    meta = None if folder is None else scored_cache(folder, checksum)
    fetched = {} if meta is None else meta.get("source") or {}
    revision = fetched.get("resolved") or item.revision
    name = " ".join(filter(None, (item.dataset or ", ".join(item.files), item.config, item.split)))
    if revision and re.fullmatch(r"[0-9a-f]{40}", revision):
        revision = revision[:12]
    name += f" @ {revision}" if revision else " (no revision pinned)"
    states = fetched.get("state") or []
    is_mirror = any(isinstance(state, dict) and state.get("kind") == "mirror" for state in states)
    return f"{name}, from a mirror" if is_mirror else name


def _templates(sides: Mapping[str, Results]) -> Table:
    columns = ("task", "context", "continuation", "shots", "primary")
    lines: dict[tuple[str, ...], None] = {}
    for results in sides.values():
        for tier in results.tiers.values():
            lines |= dict.fromkeys(_tier_templates(tier))
    return Table("Templates", columns, list(lines))


def _tier_templates(tier_results: TierResults) -> Iterable[tuple[str, ...]]:
    for name, item in tier_results.items.items():
        task = getattr(item.entry, "task", None)
        if isinstance(task, dict):
            texts = (_text(task.get(key)) for key in ("context", "continuation", "num_fewshot"))
            yield name, *texts, _text(getattr(item.entry, "primary", None))
    chats = tier_results.file.chats if isinstance(tier_results.file, Tier4File) else ()
    for chat in chats:
        stops = ", ".join(map(repr, chat.stop)) or "EOS and end of turn only"
        values = json.dumps(chat.chat_template_kwargs) if chat.chat_template_kwargs else ""
        names = f" ({', '.join(chat.probes)})" if len(chats) > 1 else ""
        template = " ".join(filter(None, (chat.chat_template, values)))
        yield f"{tier_results.tier.section}{names}", template, f"stops: {stops}", "–", "–"


def _disagreements(stage: StageResults) -> Table:
    """Return the items whose metrics change in opposite directions, by each one's 95 % interval."""
    columns = ("step", "task", "better by", "worse by")
    rows: list[tuple[str, ...]] = []
    for step, content in stage.deltas.items():
        changed: dict[str, tuple[list[str], list[str]]] = {}
        for delta in content.deltas:
            tier = TIERS[delta.tier]
            if tier.kind == "nats" or tier.rates or delta.low is None or delta.high is None:
                continue
            if delta.low > 0 or delta.high < 0:
                is_worse = (delta.low > 0) != delta.higher_is_better
                name = f"{delta.definition.words} {delta.definition.change(delta.delta)}"
                changed.setdefault(delta.item, ([], []))[is_worse].append(name)
        rows += [
            (str(step), item, ", ".join(better), ", ".join(worse))
            for item, (better, worse) in changed.items()
            if better and worse
        ]
    note = "" if rows or not stage.deltas else "No task's metrics change in opposite directions."
    return Table("Metrics that disagree about the direction", columns, rows, note)


def quality_tables(quality: TaskQuality) -> list[Table]:
    """Return the table of the quality of slices and tasks; none where nothing is scored."""
    if not quality.rows:
        return []
    others = {row.compared_with for row in quality.rows if row.compared_with is not None}
    sides = {"the bridge" if other == "bridge" else other for other in others}
    note = "Over the stage's checkpoints: rank correlation with the steps (1: steady gain)."
    if sides:
        note += (
            f" Last: how many items show such a difference with probability {quality.power:g}, by the "
            f"paired differences of the last checkpoint with {' or '.join(sorted(sides))}; "
            "▼ where there are fewer."
        )
    return [
        Table(
            "What each slice and task can detect",
            tuple(QUALITY),
            [cells_of(QUALITY, row) for row in quality.rows],
            note,
            QUALITY_NUMBERS,
        )
    ]


def _metric(row: QualityRow) -> Metric:
    return TIERS[row.tier].metric(row.metric)


QUALITY: Mapping[str, Callable[[QualityRow], str]] = {
    "item": lambda row: row.item,
    "metric": lambda row: _metric(row).words,
    "monotone": lambda row: _text(row.monotonicity, ".2f"),
    "items": lambda row: f"{row.n:,} {TIERS[row.tier].unit}",
    "to decide": lambda row: _metric(row).size(row.difference),
    "it takes": lambda row: (
        "–" if row.needed is None else f"{'▼ ' if row.too_small else ''}{row.needed:,}"
    ),
}
QUALITY_NUMBERS = frozenset(QUALITY) - {"item", "metric", "items"}

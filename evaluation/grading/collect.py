"""Make the tier files of one checkpoint from its stored scores, in seconds, without model or GPU.

They are in `by_checkpoint/step_<STEP>/` or `bridge/`. Groups, primary metrics and the checks of answers
are applied here, so changing them needs no new scores. Per-item tables are written before the JSON that
summarizes them, so a JSON's existence proves that the whole tier was written.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.checkpoints.subjects import Subject
from evaluation.dependencies.making import Made
from evaluation.dependencies.places import Place
from evaluation.dependencies.steps import SCORE
from evaluation.errors import CommandError, ResultsError, ScoringError
from evaluation.files import atomic_path, is_temporary, write_json
from evaluation.grading.header import header, origin
from evaluation.grading.tiers import SUMMARIZERS, TierFiles
from evaluation.grading.units import units_of_files, write_units
from evaluation.records import Record, read_record
from evaluation.results.read import read_tier
from evaluation.results.verified_files import FOLDER
from evaluation.scoring.external import command_name
from evaluation.settings.groups import group_weights
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore


def collect(place: Place) -> Made:
    """Write the tier files of a checkpoint that was scored, or say why there are none.

    Raises:
        EvaluationError: A cache, a file or this machine is at fault; a later run may succeed.
    """
    subject, score = place.subject, read_record(place.folder, SCORE)
    assert score is not None
    error, files = None, list[Path]()
    try:
        files = _write_tiers(subject, _store(subject, score), score.about)
    except ScoringError as wrong:
        error = str(wrong)
    _remove_others(subject, files)
    return Made(files, error)


def _store(subject: Subject, score: Record) -> ScoreStore:
    """Return the store of the checkpoint's scores, which stay in their folder when `results` changes."""
    if not score.files:
        return ScoreStore(subject.plan.scores, score.about["identity"])
    folder = Path(os.path.normpath(subject.folder / next(iter(score.files)))).parent
    return ScoreStore(folder.parent, folder.name)


def _write_tiers(subject: Subject, store: ScoreStore, about: Mapping[str, Any]) -> list[Path]:
    summarized = {name: _summarize(subject, store, name, about) for name in subject.plan.tiers}
    folder, files = subject.folder, list[Path]()
    for name, summary in summarized.items():
        tier, is_external = TIERS[name], "external" in about["tiers"][name]
        for path, write in {tier.items_file: summary.write_items, **summary.others}.items():
            if write is not None:
                write(folder / path)
                files.append(folder / path)
            elif path != tier.units_file:
                (folder / path).unlink(missing_ok=True)
        try:
            units = summary.units
            units = units_of_files(tier, summary.content, folder) if is_external else units
            files += write_units(tier, folder, units)
            write_json(folder / tier.summary_file, summary.content)
            files.append(folder / tier.summary_file)
            if is_external:
                read_tier(folder, name)
        except ResultsError as error:
            said = str(error).replace(f"{folder}/", "").replace(tier.units_file, tier.items_file)
            what = said.partition("; ")[0]
            raise CommandError(
                f"stages.{subject.plan.name}.command: its {what}; correct what the command writes"
            ) from None
    return files


def _summarize(
    subject: Subject, store: ScoreStore, name: str, about: Mapping[str, Any]
) -> TierFiles:
    entry, top = about["tiers"][name], dict[str, Any]()
    if "external" in entry:
        tier = _external_tier(subject, store, name, about)
    else:
        tier = SUMMARIZERS[name](subject.plan, store, entry)
        top = header(subject, name, about, tier.summaries, tier.counts)
    return replace(tier, content={**top, **tier.content, **_groups(subject, name, tier.content)})


def _external_tier(
    subject: Subject, store: ScoreStore, tier: str, about: Mapping[str, Any]
) -> TierFiles:
    """Return what an external program wrote, with this workflow's header; its other keys stay."""
    prefix = about["tiers"][tier]["external"]
    rows, _ = store.find_rows(prefix, [tier], lambda row, _: row)
    if not rows:
        raise ScoringError(
            f"{store.folder / prefix}: the score is missing; score this checkpoint again"
        )
    protocol = f"external: {command_name(subject.plan.stage.command or '')}"
    content = {**json.loads(rows[tier]["summary"]), **origin(subject, about), "protocol": protocol}
    section = TIERS[tier].section
    for item, entry in (content.get(section) or {}).items():
        settings = getattr(subject.plan.suite, section).get(item)
        if isinstance(entry, dict) and hasattr(settings, "group"):
            entry["group"] = settings.group
            entry |= {"kind": settings.kind} if hasattr(settings, "kind") else {}
    items = rows[tier]["items"]
    return TierFiles(content, {}, None if items is None else partial(_write_bytes, items))


def _write_bytes(content: bytes, path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def _groups(subject: Subject, name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return each item's weight in the suite's groups; empty without groups.

    Raises ScoringError where a group weighs by questions and the file does not have their number.
    """
    every = subject.plan.suite.groups
    groups = subject.plan.suite.tier_groups(name)
    if not groups:
        return {}
    used = {item: entry.get("items") for item, entry in content[TIERS[name].section].items()}
    counts = {
        item: count["used"] if isinstance(count, dict) else count for item, count in used.items()
    }
    questions = {item: count for item, count in counts.items() if count}
    try:
        return {"groups": {group: group_weights(group, every, questions) for group in groups}}
    except KeyError as lacking:
        raise ScoringError(
            f"a group weighs by questions, and {name} has no `items` of {lacking}; set `weigh: leaves`"
        ) from None


def _remove_others(subject: Subject, files: list[Path]) -> None:
    """Remove tier files of other suites, or of a checkpoint that cannot be scored any more."""
    ours = [subject.folder / name for tier in TIERS.values() for name in tier.files]
    ours += [path for path in (subject.folder / FOLDER).glob("*/*") if path.is_file()]
    for path in ours:
        if path not in files and not is_temporary(path):
            path.unlink(missing_ok=True)

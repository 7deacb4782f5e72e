"""Make the tier files of one checkpoint from its stored scores, in seconds, without model or GPU.

They are in `by_checkpoint/step_<STEP>/` or `bridge/`. Groups, primary metrics and the checks of answers
are applied here, so changing them needs no new scores. Tables are written before the JSON that summarizes
them, so a JSON's existence proves that the whole tier was written.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluation.checkpoints.inspect import TRAINED
from evaluation.checkpoints.subjects import Subject
from evaluation.checkpoints.training import consumed_tokens, metadata_state
from evaluation.errors import CommandError, ResultsError, ScoringError
from evaluation.files import atomic_path, is_temporary, write_json, write_parquet
from evaluation.grading.tiers import FOLDER, SUMMARIZERS, TierFiles
from evaluation.records import Made, Record
from evaluation.results.read import read_tier
from evaluation.results.units import units_table
from evaluation.scoring.external import command_name
from evaluation.settings.groups import centered_weights, group_weights
from evaluation.settings.tiers import TIERS, TierName
from evaluation.store import ScoreStore


def collect(subject: Subject, score: Record) -> Made:
    """Write the tier files of a checkpoint that was scored, or say why there are none.

    Raises:
        EvaluationError: A cache, a file or this machine is at fault; a later run may succeed.
    """
    error, files = score.error, list[Path]()
    try:
        if error is None:
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
    made, files = dict[TierName, TierFiles](), list[Path]()
    for name in subject.plan.tiers:
        if "external" in about["tiers"][name]:
            files += _write_external(subject, store, name, about)
        else:  # all of them first, as one may fail
            made[name] = SUMMARIZERS[name](subject.plan, store, about["tiers"][name])
    for name, tier_files in made.items():
        tier, folder = TIERS[name], subject.folder
        units = units_table(tier, tier_files.units)
        for path, write in tier_files.others.items():
            write(folder / path)
        write_parquet(folder / tier.units_file, units)
        content = {
            **header(subject, name, about, tier_files.summaries, tier_files.counts),
            **tier_files.content,
            **_groups(subject, name, tier_files.content),
        }
        write_json(folder / tier.summary_file, content)
        files += [
            folder / path for path in (*tier_files.others, tier.units_file, tier.summary_file)
        ]
    return files


def _write_external(
    subject: Subject, store: ScoreStore, name: TierName, about: Mapping[str, Any]
) -> list[Path]:
    """Write what an external program wrote, with this workflow's header; its other keys stay."""
    prefix, tier, folder = about["tiers"][name]["external"], TIERS[name], subject.folder
    rows, _ = store.find_rows(prefix, [name], lambda row, _: row)
    if not rows:
        raise ScoringError(
            f"{store.folder / prefix}: the score is missing; score this checkpoint again"
        )
    protocol = f"external: {command_name(subject.plan.stage.command or '')}"
    content = {**json.loads(rows[name]["summary"]), **origin(subject, about), "protocol": protocol}
    for item, entry in (content.get(tier.section) or {}).items():
        settings = getattr(subject.plan.suite, tier.section).get(item)
        if isinstance(entry, dict) and hasattr(settings, "group"):
            entry["group"] = settings.group
            entry |= {"kind": settings.kind} if hasattr(settings, "kind") else {}
    content |= _groups(subject, name, content)
    units = folder / tier.units_file
    units.unlink(missing_ok=True)
    if rows[name]["items"] is not None:
        with atomic_path(units) as temporary:
            temporary.write_bytes(rows[name]["items"])
    write_json(folder / tier.summary_file, content)
    try:
        read_tier(folder, name)
    except ResultsError as error:
        what = str(error).replace(f"{folder}/", "").partition("; ")[0]
        raise CommandError(
            f"stages.{subject.plan.name}.command: its {what}; correct what the command writes"
        ) from None
    return [path for path in (units, folder / tier.summary_file) if path.exists()]


def header(
    subject: Subject,
    tier: str,
    about: Mapping[str, Any],
    summaries: Iterable[Mapping[str, Any]],
    items: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the first keys of a tier file: its checkpoint, its protocol, and the cost of scoring.

    Args:
        items: Items requested, used and left out.
    """
    summaries = list(summaries)
    seconds = sum(summary["seconds"] for summary in summaries)
    tokens = sum(summary["tokens_processed"] for summary in summaries)
    # Of all scores, which may be older than the versions that are installed now.
    packages = sorted({package for summary in summaries for package in summary["packages"].items()})
    distinct = {
        key: sorted({summary[key] for summary in summaries if summary.get(key) is not None})
        for key in ("gpu", "row_tokens")
    }
    return {
        **origin(subject, about),
        "protocol": TIERS[tier].protocol,
        "packages": {name: [v for other, v in packages if other == name] for name, _ in packages},
        "device": about["device"],
        "gpu": " and ".join(distinct["gpu"]) or None,
        "row_tokens": distinct["row_tokens"],
        "dtype": about["dtype"],
        "seconds": round(seconds, 3),
        "tokens_per_second": round(tokens / seconds, 1) if seconds else None,
        "items": items,
    }


def origin(subject: Subject, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that identify the checkpoint of a tier file, with which it begins."""
    is_there = bool(metadata_state(subject.checkpoint))
    return {
        "stage": subject.plan.name,
        "step": subject.step,
        "role": subject.role,
        "checkpoint": about["checkpoint"],
        "checkpoint_identity": about["identity"],
        "tokenizer": about["tokenizer"],
        "sequence_length": about["sequence_length"],
        **{key: about[key] for key in TRAINED if about.get(key) is not None},
        "consumed_tokens": consumed_tokens(subject.checkpoint)
        if is_there
        else about.get("consumed_tokens"),
    }


def _groups(subject: Subject, name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return each item's weight in the suite's groups, and what is subtracted; empty without groups.

    Raises ScoringError where the file lacks the numbers of questions, or the chances, of a group's items.
    """
    every = subject.plan.suite.groups
    groups, tier = subject.plan.suite.tier_groups(name), TIERS[name]
    if not groups:
        return {}
    entries = content[tier.section]
    used = {item: entry.get("items") for item, entry in entries.items()}
    counts = {item: one["used"] if isinstance(one, dict) else one for item, one in used.items()}
    questions = {item: count for item, count in counts.items() if count}
    values = {item: entry.get(tier.head.key) for item, entry in entries.items()}
    try:
        weights = {group: group_weights(group, every, questions, values) for group in groups}
    except KeyError as lacking:
        raise ScoringError(
            f"a group weighs by questions, and {name} has no `items` of {lacking}; set `weigh: leaves`"
        ) from None
    chances = {item: entry.get("chance") for item, entry in entries.items()}
    offsets = dict[str, float]()
    for group in (group for group, one in groups.items() if one.centered):
        if without := [item for item in weights[group] if chances[item] is None]:
            raise ScoringError(
                f"groups.{group}: it is centered, and {name} has no `chance` of {without[0]}; write it"
            )
        weights[group], offsets[group] = centered_weights(weights[group], chances)
    return {"groups": weights, "offsets": offsets}


def _remove_others(subject: Subject, files: list[Path]) -> None:
    """Remove tier files of other suites, or of a checkpoint that cannot be scored any more."""
    ours = [subject.folder / name for tier in TIERS.values() for name in tier.files]
    ours += [path for path in (subject.folder / FOLDER).glob("*/*") if path.is_file()]
    for path in ours:
        if path not in files and not is_temporary(path):
            path.unlink(missing_ok=True)

"""Where a stage's numbers come from: what every checkpoint was scored with, as its files state it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.reporting.judged_stage import JudgedStage
from evaluation.settings.tiers import TIERS

Row = dict[str, str]


def provenance_rows(stage: JudgedStage) -> list[Row]:
    """Return a row for each tier and each set of checkpoints that were scored alike."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    seconds: dict[tuple[tuple[str, str], ...], float] = {}
    for name, folder in _folders(stage):
        for tier in stage.plan.tiers:
            header = _header(folder / TIERS[tier].summary_file)
            if header:
                key = tuple({"tier": tier, **_about(header)}.items())
                alike.setdefault(key, []).append(name)
                seconds[key] = seconds.get(key, 0.0) + (header.get("seconds") or 0.0)
    return [
        {
            "stage": stage.plan.name,
            "checkpoints": ", ".join(names),
            **dict(key),
            "seconds": f"{seconds[key]:.0f}",
        }
        for key, names in alike.items()
    ]


def _folders(stage: JudgedStage) -> Iterator[tuple[str, Path]]:
    for step in stage.steps:
        yield str(step), stage.plan.step_folder(step)
    if stage.plan.stage.bridge is not None:
        yield f"bridge ({stage.against})", stage.plan.bridge_folder


def _header(path: Path) -> dict[str, Any] | None:
    try:
        header: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):  # what is missing or damaged is named at the top
        return None
    return header


def _about(header: dict[str, Any]) -> dict[str, str]:
    packages = header.get("packages") or {}
    items = header.get("items")
    tokenizer = header.get("tokenizer") or {}
    entries = header.get("generation_tasks", {}).values()
    engines = dict.fromkeys(_engine(entry["engine"]) for entry in entries if entry.get("engine"))
    return {
        "items": f"{items['used']} of {items['asked']}"
        if isinstance(items, dict)
        else str(items or "–"),
        "protocol": str(header.get("protocol")),
        "device": str(header.get("gpu") or header.get("device") or "–"),
        "numbers": str(header.get("dtype") or "–"),
        "window": str(header.get("sequence_length")),
        "tokenizer": f"{tokenizer.get('name')} ({str(tokenizer.get('fingerprint'))[:8]})",
        "packages": ", ".join(
            [*engines, *(f"{name} {' and '.join(of)}" for name, of in packages.items())]
        ),
    }


def _engine(engine: dict[str, Any]) -> str:
    """Name another engine that wrote completions, and the file that they were read from."""
    name = " ".join(filter(None, (engine["name"], engine.get("version"))))
    return name + (f", imported from {engine['imported']}" if engine.get("imported") else "")

"""Where a stage's numbers come from: what every checkpoint was scored with, as its files state it."""

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from evaluation.reporting.judged_stage import JudgedStage
from evaluation.settings.tiers import TIERS


def provenance_rows(stage: JudgedStage) -> list[dict[str, Any]]:
    """Return a row for each tier and each set of checkpoints that were scored alike."""
    rows = pd.DataFrame(_headers(stage))
    if not len(rows):
        return []
    alike = [name for name in rows.columns if name not in ("checkpoints", "seconds")]
    joined = rows.groupby(alike, sort=False, as_index=False).agg(
        checkpoints=("checkpoints", ", ".join), seconds=("seconds", "sum")
    )
    found: list[dict[str, Any]] = joined.round(1).to_dict("records")
    return found


def _headers(stage: JudgedStage) -> Iterator[dict[str, Any]]:
    """Yield what each file says; what is missing or damaged is named elsewhere."""
    sides = [(str(step), stage.plan.step_folder(step)) for step in stage.steps]
    if stage.plan.stage.bridge is not None:
        sides.append((f"bridge ({stage.against})", stage.plan.bridge_folder))
    for name, folder in sides:
        for tier in stage.plan.tiers:
            try:
                header = json.loads((folder / TIERS[tier].summary_file).read_text())
                yield {
                    "stage": stage.plan.name,
                    "tier": tier,
                    **_about(header),
                    "checkpoints": name,
                }
            except (OSError, ValueError, AttributeError):
                continue


def _about(header: dict[str, Any]) -> dict[str, Any]:
    items, tokenizer = header.get("items"), header.get("tokenizer") or {}
    tasks = header.get("generation_tasks", {}).values()
    engines = [task["engine"] for task in tasks if task.get("engine")]
    versions = {name: " and ".join(of) for name, of in (header.get("packages") or {}).items()}
    versions |= {one["name"]: one.get("version") or "" for one in engines}
    return {
        "items": f"{items['used']} of {items['asked']}" if isinstance(items, dict) else str(items),
        "protocol": header.get("protocol", ""),
        "device": header.get("gpu") or header.get("device") or "",
        "numbers": header.get("dtype") or "",
        "window": header.get("sequence_length", 0),
        "tokenizer": f"{tokenizer.get('name')} ({str(tokenizer.get('fingerprint'))[:8]})",
        "packages": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "seconds": header.get("seconds") or 0.0,
    }

"""An external program in place of the engine, by the contract that existing launchers use.

It is called with LIGHTEVAL_CHECKPOINT_PATH, LIGHTEVAL_RESULTS_DIR, LIGHTEVAL_STEP,
LIGHTEVAL_TOKENIZER, LIGHTEVAL_SEQ_LEN and EVAL_DATA_DIR set and writes the tier files into
LIGHTEVAL_RESULTS_DIR. They count only if they hold what the suite asks for.
"""

import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluation.checkpoints.completeness import check_whole
from evaluation.checkpoints.format import open_checkpoint
from evaluation.errors import ScoringError
from evaluation.files import write_json
from evaluation.scoring.results import Subject
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName


def run_external(plan: StagePlan, subject: Subject) -> Path:
    """Runs the stage's command, validates its tier files and moves them into place.

    Raises:
        ScoringError: if the command fails or a tier file is missing or does not hold what the
            suite asks for; nothing is moved then.
    """
    checkpoint = open_checkpoint(subject.checkpoint)
    check_whole(checkpoint)  # the program may know models that the engine does not
    subject.folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".external-", dir=subject.folder))
    try:
        _call(plan, subject, checkpoint.path, scratch)
        header = {
            "stage": plan.name,
            "step": subject.step,
            "role": subject.role,
            "checkpoint": str(checkpoint.path),
            "checkpoint_identity": checkpoint.identity,
            "tokenizer": {"name": plan.tokenizer.name},
            "sequence_length": plan.sequence_length,
            "protocol": f"external: {plan.stage.command}",
        }
        for tier in plan.tiers:
            path = scratch / TIERS[tier].summary_file
            write_json(path, {**header, **_read(path, tier, plan)})
        for path in sorted(scratch.iterdir(), key=lambda path: path.suffix == ".json"):
            os.replace(path, subject.folder / path.name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return subject.folder


def _call(plan: StagePlan, subject: Subject, checkpoint: Path, results: Path) -> None:
    command = plan.stage.command
    if command is None:
        raise ScoringError(f"stages.{plan.name}.command: no external command is configured")
    contract = {
        "LIGHTEVAL_CHECKPOINT_PATH": str(checkpoint),
        "LIGHTEVAL_RESULTS_DIR": str(results),
        "LIGHTEVAL_STEP": "" if subject.step is None else str(subject.step),
        "LIGHTEVAL_TOKENIZER": str(plan.tokenizer_folder),
        "LIGHTEVAL_SEQ_LEN": str(plan.sequence_length),
        "EVAL_DATA_DIR": str(plan.cache),
    }
    done = subprocess.run(command, shell=True, env={**os.environ, **contract}, check=False)
    if done.returncode:
        raise ScoringError(
            f"stages.{plan.name}.command: {command!r} ended with exit code {done.returncode} for "
            f"{checkpoint}; its own output is above"
        )


def _read(path: Path, tier: TierName, plan: StagePlan) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ScoringError(
            f"stages.{plan.name}.command: it ended well but wrote no {path.name} into "
            "LIGHTEVAL_RESULTS_DIR"
        ) from None
    except ValueError as error:
        raise ScoringError(
            f"stages.{plan.name}.command: its {path.name} is not JSON: {error}"
        ) from None
    if not isinstance(content, dict):
        raise ScoringError(f"stages.{plan.name}.command: its {path.name} is not a JSON object")
    wrong = _CHECKS[tier](content, plan)
    if wrong:
        raise ScoringError(f"stages.{plan.name}.command: its {path.name}: {wrong}")
    return content


def _is_number(value: Any, low: float, high: float) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and low <= value <= high


def _wrong_entries(
    content: dict[str, Any], section: str, names: list[str], key: str, high: float
) -> str | None:
    entries = content.get(section)
    if not isinstance(entries, dict):
        return f"no {section!r}"
    for name in names:
        entry = entries.get(name)
        if not isinstance(entry, dict):
            return f"{section}.{name} is missing"
        if not _is_number(entry.get(key), 0.0, high):
            return f"{section}.{name}.{key} is {entry.get(key)!r}, not a number from 0 to {high}"
    return None


def _wrong_tier2(content: dict[str, Any], plan: StagePlan) -> str | None:
    return _wrong_entries(content, "slices", list(plan.suite.slices), "ppl", math.inf)


def _wrong_tier3(content: dict[str, Any], plan: StagePlan) -> str | None:
    return _wrong_entries(content, "tasks", list(plan.suite.tasks), "accuracy", 1.0)


def _wrong_tier4(content: dict[str, Any], plan: StagePlan) -> str | None:
    summary = content.get("summary")
    rate = summary.get("all_checks_pass_rate") if isinstance(summary, dict) else None
    if not _is_number(rate, 0.0, 1.0):
        return f"summary.all_checks_pass_rate is {rate!r}, not a number from 0 to 1"
    return None


_CHECKS: dict[TierName, Callable[[dict[str, Any], StagePlan], str | None]] = {
    "tier2": _wrong_tier2,
    "tier3": _wrong_tier3,
    "tier4": _wrong_tier4,
}

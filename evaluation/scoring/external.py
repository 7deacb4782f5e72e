"""Run a stage's external command in place of the engine, with the variables of existing launchers.

The command gets LIGHTEVAL_CHECKPOINT_PATH, LIGHTEVAL_RESULTS_DIR, LIGHTEVAL_STEP, LIGHTEVAL_TOKENIZER,
LIGHTEVAL_SEQ_LEN and EVAL_DATA_DIR, and LIGHTEVAL_HF_PATH where its text names it. It writes the tier files
into LIGHTEVAL_RESULTS_DIR. These are accepted only if they have all numbers that the suite needs. They go
into the score store, a row a tier: the same command does not run again for the same checkpoint, suite and
data.
"""

import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.checkpoints.completeness import check_whole
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.subjects import Subject
from evaluation.errors import CommandError
from evaluation.files import fingerprint, load_json
from evaluation.prefill.entries import read_meta
from evaluation.processes import end_group
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName
from evaluation.store import Rows, ScoreStore, StoredScore

FILES = pa.schema([("key", pa.string()), ("summary", pa.string()), ("items", pa.binary())])
"""A row for each tier: its JSON, and its table of units, null if there is none."""


def command_name(command: str) -> str:
    """Return a command's program and fingerprint for results; the command itself may hold secrets."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    program = next((Path(word).name for word in words if "=" not in word), "command")
    return f"{program} {fingerprint(command)[:8]}"


def run_external(subject: Subject) -> tuple[dict[str, Any], ScoreStore, list[str]]:
    """Run the stage's command unless its results are stored; return record, store and names there.

    Raises CommandError when it fails, or a tier file is missing or lacks a number; nothing is stored then.
    """
    plan, checkpoint = subject.plan, subject.open()
    check_whole(checkpoint)  # the command may support models that the engine does not
    identity = Contents(Path(plan.config.results)).identity(checkpoint)
    store = ScoreStore(plan.scores, identity)
    rows = Rows(store, "external", _key(plan))
    if rows.lacking(plan.tiers):
        results = Path(plan.config.results)
        results.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(
            prefix="external-", dir=results, ignore_cleanup_errors=True
        ) as name:
            _call(subject, checkpoint.path, Path(name))
            files = [_files(Path(name), tier, plan) for tier in plan.tiers]
            check_whole(checkpoint)  # also raises if it changed since it was opened
        rows.add(StoredScore(pa.Table.from_pylist(files, FILES), {}))
    about = {
        "checkpoint": str(checkpoint.path),
        "identity": identity,
        "tokenizer": {"name": plan.tokenizer.name},
        "sequence_length": plan.sequence_length,
        "tiers": {tier: {"external": rows.prefix} for tier in plan.tiers},
    }
    return about, store, [*rows.used]


def _key(plan: StagePlan) -> dict[str, Any]:
    folders = [plan.tokenizer_folder]
    folders += [plan.cache_folder(t, name) for t in plan.tiers for name in plan.cache_entries(t)]
    return {
        "command": plan.command_state,
        "sequence_length": plan.sequence_length,
        "tiers": list(plan.tiers),
        "data": {folder.name: read_meta(folder)["checksum"] for folder in folders},
    }


def _call(subject: Subject, checkpoint: Path, results: Path) -> None:
    plan, command = subject.plan, subject.plan.stage.command or ""
    contract = {
        "LIGHTEVAL_CHECKPOINT_PATH": str(checkpoint),
        "LIGHTEVAL_RESULTS_DIR": str(results),
        "LIGHTEVAL_STEP": "" if subject.step is None else str(subject.step),
        "LIGHTEVAL_TOKENIZER": str(plan.tokenizer_folder),
        "LIGHTEVAL_SEQ_LEN": str(plan.sequence_length),
        "EVAL_DATA_DIR": str(plan.cache),
    }
    if "LIGHTEVAL_HF_PATH" in command:
        contract["LIGHTEVAL_HF_PATH"] = str(_write_folder(subject, results / ".huggingface"))
    where = f"stages.{plan.name}.command: {command_name(command)}"
    hours = plan.stage.command_hours
    process = subprocess.Popen(
        command,
        shell=True,
        env={**os.environ, **contract},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout=hours * 3600)
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"{where} did not end within its limit of {hours:g} h for {checkpoint}; raise "
            f"stages.{plan.name}.command_hours or find out why it hangs"
        ) from None
    finally:
        end_group(process)
    if code:
        raise CommandError(
            f"{where} ended with exit code {code} for {checkpoint}; its own output is above"
        )


def _write_folder(subject: Subject, folder: Path) -> Path:
    """Write the checkpoint and its tokenizer as a Hugging Face folder; no other program reads Nanotron."""
    from evaluation.checkpoints.load import load_model
    from evaluation.tokenizers.files import copy_files

    load_model(subject.open()).save_pretrained(folder)
    copy_files(subject.plan.tokenizer_folder, folder)
    return folder


def _files(folder: Path, tier: TierName, plan: StagePlan) -> dict[str, Any]:
    """Return a tier's row of FILES; raise CommandError if one is missing, unreadable, or lacks a number."""
    path, items = (folder / name for name in (TIERS[tier].summary_file, TIERS[tier].units_file))
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("it is not there, or no file; have the command write it")
        text = path.read_text(encoding="utf-8")
        _check_items(load_json(text, finite=True), tier, plan)
        path, content = items, None
        if items.is_file() and not items.is_symlink():
            content = items.read_bytes()
            pq.read_table(items)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CommandError(
            f"stages.{plan.name}.command: its {path.name} (in LIGHTEVAL_RESULTS_DIR) cannot be used: "
            f"{error}; check what the command writes"
        ) from None
    return {"key": tier, "summary": text, "items": content}


def _check_items(content: Any, name: TierName, plan: StagePlan) -> None:
    """Raise ValueError where a tier's file lacks the number of an item; `collect` checks their values."""
    tier = TIERS[name]
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    if tier.rates:
        needed: set[tuple[str, ...]] = {("summary", tier.headline)}
    else:
        needed = {
            (
                tier.section,
                item,
                "".join(tier.unranked[:1]) if is_gold else tier.metric(tier.shown).key,
            )
            for item, definition in getattr(plan.suite, tier.section).items()
            for is_gold in [getattr(definition, "kind", None) == "gold"]
        }
    for place in sorted(needed):
        value: Any = content
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        if type(value) not in (int, float):
            raise ValueError(f"{'.'.join(place)} is {value!r}, not a number")

"""Check that a checkpoint fits its stage: its tokenizer, its sequence length, and its vocabulary."""

import contextlib
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.checkpoints.config_files import read_table
from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.huggingface_config import end_tokens, text_config
from evaluation.checkpoints.subjects import Subject, stage_subjects
from evaluation.errors import CheckpointError, EvaluationError
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)

_FILES = (
    *("tokenizer.json", "*.model", "vocab.*", "merges.txt", "added_tokens.json"),
    *("tokenizer_config.json", "special_tokens_map.json"),
)
"""Names of the files that a text's ids depend on."""
_MOST_PADDING = 1024
"""Rows of an embedding that pad a vocabulary, at most."""
_TYPED_END = 2
"""The end token that Nanotron's configurations have where nobody wrote another."""


def check_agreement(plan: StagePlan, checkpoint: Checkpoint, *, is_bridge: bool = False) -> None:
    """Raise CheckpointError for a checkpoint of another tokenizer or sequence length, or of unknown ones.

    A bridge may have been trained on shorter sequences than its stage scores: its loss on longer
    sequences shows what the stage has gained.
    """
    _check_tokenizer(plan, checkpoint)
    _check_length(plan, checkpoint, is_bridge)


def _check_tokenizer(plan: StagePlan, checkpoint: Checkpoint) -> None:
    named, wanted = checkpoint.tokenizer_name, plan.tokenizer
    if checkpoint.kind == "nanotron" and named is None and plan.stage.assume is None:
        what = "names no tokenizer; write into it which one was used"
        if checkpoint.training is None:
            what = "missing, so the tokenizer and sequence length are not known; copy it"
        mup = str(bool(checkpoint.use_mup)).lower()
        raise CheckpointError(
            f"{checkpoint.path / 'config.yaml'}: {what}, or assume those of {plan.name} with "
            f"stages.{plan.name}.assume: {{use_mup: {mup}}}"
        )
    revision = checkpoint.training and checkpoint.training.tokenizer_revision
    if named and revision not in (None, "main", wanted.revision) and not os.path.isdir(named):
        named = f"{named}@{revision}"
    if named is None or _place(named) in map(_place, (wanted.name, *wanted.also_known_as)):
        return
    if not _is_same_elsewhere(plan, checkpoint, named):
        written, mine = (json.dumps(one, ensure_ascii=False) for one in (named, wanted.name))
        key, known = plan.tokenizer_key, f"also_known_as: [{written}]"
        where = f"write stages.{plan.name}.tokenizer: {{name: {mine}, {known}}}"
        where = f"add to {key}.{known}" if key else where
        raise CheckpointError(
            f"{checkpoint.path}: trained with tokenizer {named!r}, but {plan.name} is evaluated with "
            f"{wanted.name!r}; if they are the same, {where}"
        )
    log.warning(
        "%s: trained with tokenizer %s, which is taken for %s: %s", plan.name, named, wanted.name,
        "its files are the same" if os.path.isdir(named) else "vocabulary size and special ids agree",
    )  # fmt: skip


def _place(name: str) -> str:
    """Return a tokenizer's name, or the real path of its folder, however the path is written."""
    return os.path.realpath(name) if os.path.isdir(name) else name


def _is_same_elsewhere(plan: StagePlan, checkpoint: Checkpoint, named: str) -> bool:
    """Return whether another folder has the same files; for one that is not here, whether numbers agree."""
    if os.path.isdir(named):
        home = plan.tokenizer_folder if plan.tokenizer_folder.is_dir() else plan.tokenizer.name
        files = _files(Path(home))
        return files == _files(Path(named)) and any("config" not in name for name in files)
    saved, config = _saved(plan), text_config(checkpoint.model_config)
    ids = {key: config.get(key) for key in ("bos_token_id", "eos_token_id")}
    given = [key for key, value in ids.items() if value is not None]
    return (
        named.startswith(("/", "~", "."))
        and bool(saved and given)
        and all(ids[key] == saved[key] for key in given)
        and 0 <= checkpoint.vocab_size - saved["vocab_size"] < _MOST_PADDING
    )


def _files(folder: Path) -> dict[str, bytes]:
    paths = [path for pattern in _FILES for path in folder.glob(pattern) if path.is_file()]
    return {path.name: path.read_bytes() for path in paths}


def _saved(plan: StagePlan) -> dict[str, Any]:
    """Return the description of the tokenizer that prefill saved; empty before that."""
    with contextlib.suppress(CheckpointError):
        return read_table(plan.tokenizer_folder / "meta.json")
    return {}


def tokenizer_warnings(plan: StagePlan, plans: Mapping[str, StagePlan]) -> list[str]:
    """Return where a stage's first and last checkpoint, so far, disagree with the saved tokenizer."""
    found, subjects = list[str](), list[Subject]()
    with contextlib.suppress(EvaluationError, OSError):
        subjects = stage_subjects(plan, plans) if not plan.stage.command else []
    for subject in subjects[:1] + subjects[1:][-1:]:
        with contextlib.suppress(EvaluationError, OSError):
            found.append(other_end(plan, checkpoint := subject.open()))
            try:
                _check_tokenizer(plan, checkpoint)
            except CheckpointError as error:
                found.append(f"{error}; until then no checkpoint is scored")
    return [*dict.fromkeys(filter(None, found))]


def other_end(plan: StagePlan, checkpoint: Checkpoint) -> str:
    """Return a warning if a configuration has other end tokens than the stage's tokenizer; else ''."""
    ends = end_tokens(checkpoint.model_config, checkpoint.path)
    own = _saved(plan).get("eos_token_id")
    if checkpoint.kind == "nanotron":
        ends -= {_TYPED_END}
    if not ends or own is None or own in ends:
        return ""
    return (
        f"{plan.name}: tokenizer {plan.tokenizer.name!r} ends a text with token {own}, the configuration in "
        f"{checkpoint.path} with {', '.join(map(str, sorted(ends)))}: documents are separated by {own}, and "
        "either ends an answer of a Hugging Face model; if it was trained with the other one, name that "
        "as `eos_token` in a copy of the tokenizer's tokenizer_config.json and set "
        f"{plan.tokenizer_key or 'tokenizer'}.name to the copy"
    )


def check_tokenizer_fits(
    checkpoint: Checkpoint, vocab_size_needed: int, tokens: int | None = None
) -> None:
    """Refuse a checkpoint that lacks an embedding for a needed id, or has far more than there are tokens."""
    rows = checkpoint.vocab_size
    if vocab_size_needed > rows or rows > 2 * (tokens or rows):
        used = f"uses ids up to {vocab_size_needed - 1}" if vocab_size_needed > rows else ""
        raise CheckpointError(
            f"{checkpoint.path}: its embedding has {rows} rows, but the tokenizer "
            f"{used or f'has only {tokens} tokens'}; use the tokenizer the checkpoint was trained with, and "
            "all of its files"
        )


def _check_length(plan: StagePlan, checkpoint: Checkpoint, is_bridge: bool) -> None:
    """Check the length of training, or the positions of a Hugging Face folder, which does not record it."""
    trained, scored, config = checkpoint.sequence_length, plan.sequence_length, "config.yaml"
    if checkpoint.kind == "huggingface":
        table, config = text_config(checkpoint.model_config), "config.json"
        known = [table.get(name) for name in ("max_position_embeddings", "n_positions")]
        trained = min([scored, *(one for one in known if type(one) is int)])
    if trained is None or trained == scored:
        return
    if trained < scored and is_bridge and checkpoint.kind == "nanotron":
        log.warning(
            "%s: trained on sequences of %d tokens; as %s's bridge it is scored on %d",
            checkpoint.path, trained, plan.name, scored,
        )  # fmt: skip
    elif trained < scored or not plan.stage.allow_shorter_sequences:
        shorter = f", or accept shorter ones with stages.{plan.name}.allow_shorter_sequences: true"
        raise CheckpointError(
            f"{checkpoint.path / config}: its sequences have {trained} tokens at most, but {plan.name} "
            f"scores {scored}; set sequence_length: {trained}{shorter if trained > scored else ''}"
        )

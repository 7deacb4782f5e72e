"""Check that a checkpoint fits its stage: its tokenizer, its sequence length, and its vocabulary."""

import contextlib
import functools
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.huggingface_config import end_tokens, text_config
from evaluation.checkpoints.subjects import stage_subjects
from evaluation.errors import CheckpointError, EvaluationError
from evaluation.files import load_json
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)

_VOCABULARY = ("tokenizer.json", "*.model", "vocab.*", "merges.txt", "added_tokens.json")
_SPECIAL = ("tokenizer_config.json", "special_tokens_map.json")
_MOST_PADDING = 1024
"""Rows of an embedding that pad a vocabulary, at most."""
_TYPED_END = 2
"""The end token that Nanotron's configurations have where nobody wrote another."""


def check_agreement(plan: StagePlan, checkpoint: Checkpoint, *, is_bridge: bool = False) -> None:
    """Refuse a checkpoint that was trained with another tokenizer or sequence length.

    A bridge may have been trained on shorter sequences than its stage scores: its loss on longer
    sequences shows what the stage has gained.

    Raises:
        CheckpointError: It disagrees, or it records neither and the stage has no `assume`.
    """
    _check_tokenizer(plan, checkpoint)
    if checkpoint.kind == "huggingface":
        _check_positions(plan, checkpoint)
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
    if named is None:
        return
    if _place(named) not in map(_place, (wanted.name, *wanted.also_known_as)):
        if not _is_same_elsewhere(plan, checkpoint, named):
            raise CheckpointError(
                f"{checkpoint.path}: trained with tokenizer {named!r}, but {plan.name} is evaluated with "
                f"{wanted.name!r}; {_also_known_as(plan, named)}"
            )
        _note_other_place(plan.name, named, wanted.name)
    trained, own = checkpoint.tokenizer_revision, wanted.revision or "main"
    if trained is None or named != wanted.name or os.path.isdir(named):
        return
    same = f"{named}@{trained}"
    if trained not in (own, "main") and same not in wanted.also_known_as:
        raise CheckpointError(
            f"{checkpoint.path}: trained with revision {trained!r} of tokenizer {named!r}, but {plan.name} "
            f"is evaluated with {own!r}; set {plan.tokenizer_key or 'tokenizer'}.revision: {trained}, or "
            f"{_also_known_as(plan, same)}"
        )


def _place(name: str) -> str:
    """Return a tokenizer's name, or the real path of its folder, however the path is written."""
    return os.path.realpath(name) if os.path.isdir(name) else name


def _is_same_elsewhere(plan: StagePlan, checkpoint: Checkpoint, named: str) -> bool:
    """Return whether another folder has the same files; for one that is not here, whether numbers agree."""
    home = plan.tokenizer_folder if plan.tokenizer_folder.is_dir() else Path(plan.tokenizer.name)
    if os.path.isdir(named):
        files = _files(home, *_VOCABULARY)
        all_names = (*_VOCABULARY, *_SPECIAL)
        return bool(files) and _files(Path(named), *all_names) == _files(home, *all_names)
    saved, config = _saved(plan), text_config(checkpoint.model_config)
    if not named.startswith(("/", "~", ".")) or not saved:
        return False
    ids = {key: config.get(key) for key in ("bos_token_id", "eos_token_id")}
    given = [key for key, value in ids.items() if value is not None]
    padding = checkpoint.vocab_size - saved["vocab_size"]
    agrees = all(ids[key] == saved[key] for key in given)
    return bool(given) and agrees and 0 <= padding < _MOST_PADDING


def _files(folder: Path, *patterns: str) -> dict[str, bytes]:
    paths = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return {path.name: path.read_bytes() for path in paths}


def _saved(plan: StagePlan) -> dict[str, Any]:
    """Return the description of the tokenizer that prefill saved; empty before that."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, Any] = load_json((plan.tokenizer_folder / "meta.json").read_bytes())
        return found
    return {}


@functools.cache
def _note_other_place(stage: str, named: str, own: str) -> None:
    """Log once a stage that its checkpoints name the tokenizer by another path."""
    log.warning(
        "%s: trained with tokenizer %s, which is taken for %s: %s", stage, named, own,
        "its files are the same" if os.path.isdir(named) else "vocabulary size and special ids agree",
    )  # fmt: skip


def _also_known_as(plan: StagePlan, name: str) -> str:
    """Return the remedy for the case that this name denotes the stage's own tokenizer."""
    written, own = (json.dumps(one, ensure_ascii=False) for one in (name, plan.tokenizer.name))
    where = f"add to {plan.tokenizer_key}.also_known_as: [{written}]"
    if not plan.tokenizer_key:
        where = f"write into stages.{plan.name}: `tokenizer: {{name: {own}, also_known_as: [{written}]}}`"
    return f"if they are the same, {where}"


def tokenizer_warnings(plan: StagePlan, plans: Mapping[str, StagePlan]) -> list[str]:
    """Return where a stage's first and last checkpoint, so far, disagree with the saved tokenizer."""
    found = []
    with contextlib.suppress(EvaluationError, OSError):
        subjects = stage_subjects(plan, plans) if not plan.stage.command else []
        for subject in subjects[:1] + subjects[1:][-1:]:
            with contextlib.suppress(EvaluationError, OSError):
                checkpoint = subject.open()
                found.append(other_end(plan, checkpoint))
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
    """Refuse a checkpoint that lacks an embedding for a token id, or has far more than there are tokens.

    Args:
        vocab_size_needed: The largest token id plus one.
        tokens: Number of the tokenizer's tokens; None if it is not known.
    """
    problem = None
    if vocab_size_needed > checkpoint.vocab_size:
        problem = f"the tokenizer uses ids up to {vocab_size_needed - 1}"
    elif tokens is not None and checkpoint.vocab_size > 2 * tokens:
        problem = f"the tokenizer has only {tokens} tokens"
    if problem:
        raise CheckpointError(
            f"{checkpoint.path}: its embedding has {checkpoint.vocab_size} rows, but {problem}; use the "
            "tokenizer the checkpoint was trained with, and all of its files"
        )


def _check_length(plan: StagePlan, checkpoint: Checkpoint, is_bridge: bool) -> None:
    trained, scored = checkpoint.sequence_length, plan.sequence_length
    if trained is None or trained == scored:
        return
    if trained < scored and is_bridge:
        log.warning(
            "%s: trained on sequences of %d tokens; as %s's bridge it is scored on %d",
            checkpoint.path, trained, plan.name, scored,
        )  # fmt: skip
    elif trained < scored or not plan.stage.allow_shorter_sequences:
        shorter = f", or accept shorter ones with stages.{plan.name}.allow_shorter_sequences: true"
        raise CheckpointError(
            f"{checkpoint.path}: trained on sequences of {trained} tokens, but {plan.name} scores "
            f"{scored}; set sequence_length: {trained}{shorter if trained > scored else ''}"
        )


def _check_positions(plan: StagePlan, checkpoint: Checkpoint) -> None:
    """Check the positions of a Hugging Face folder, which does not record its sequence length."""
    config = text_config(checkpoint.model_config)
    for name in ("max_position_embeddings", "n_positions"):
        positions = config.get(name)
        if type(positions) is int and positions < plan.sequence_length:
            raise CheckpointError(
                f"{checkpoint.path / 'config.json'}: `{name}` is {positions}, but {plan.name} scores "
                f"sequences of {plan.sequence_length} tokens; set sequence_length: {positions}, or "
                "less"
            )

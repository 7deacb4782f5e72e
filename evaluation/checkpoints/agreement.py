"""Check that a checkpoint fits its stage: its tokenizer, its sequence length, and the number of GPUs."""

import contextlib
import json
import logging
import os
from collections.abc import Iterable, Mapping

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.huggingface_config import text_config
from evaluation.checkpoints.subjects import stage_subjects
from evaluation.checkpoints.training import read_training, recorded_revision
from evaluation.errors import CheckpointError, EvaluationError
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)


def check_agreement(
    plan: StagePlan,
    checkpoint: Checkpoint,
    *,
    is_bridge: bool = False,
    others: Iterable[Checkpoint] = (),
) -> None:
    """Refuse a checkpoint that was trained with another tokenizer or sequence length.

    A bridge may have been trained on shorter sequences than its stage scores: its loss on longer
    sequences shows what the stage has gained.

    Args:
        plan: The stage that scores it.
        others: Other checkpoints of the stage; the remedy also names their tokenizers.

    Raises:
        CheckpointError: It disagrees, or it records neither and the stage has no `assume`.
    """
    _check_tokenizer(plan, checkpoint, others)
    if checkpoint.kind == "huggingface":
        _check_positions(plan, checkpoint)
    _check_length(plan, checkpoint, is_bridge)


def _check_tokenizer(plan: StagePlan, checkpoint: Checkpoint, others: Iterable[Checkpoint]) -> None:
    named = checkpoint.tokenizer_name
    if checkpoint.kind == "nanotron" and named is None and plan.stage.assume is None:
        what = "names no tokenizer; write into it which one was used"
        if checkpoint.training_config is None:
            what = "missing, so the tokenizer and sequence length are not known; copy it"
        mup = str(bool(checkpoint.use_mup)).lower()
        raise CheckpointError(
            f"{checkpoint.path / 'config.yaml'}: {what}, or assume those of {plan.name} with "
            f"stages.{plan.name}.assume: {{use_mup: {mup}}}"
        )
    if _unknown_names(plan, [named]):
        other_names = [other.tokenizer_name for other in others]
        raise CheckpointError(
            f"{checkpoint.path}: trained with tokenizer {named!r}, but {plan.name} is evaluated with "
            f"{plan.tokenizer.name!r}; {_also_known_as(plan, _unknown_names(plan, [*other_names, named]))}"
        )
    _check_revision(plan, checkpoint)


def _check_revision(plan: StagePlan, checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint that was trained with another revision of the stage's tokenizer on the hub."""
    wanted, name = plan.tokenizer, checkpoint.tokenizer_name
    trained = recorded_revision(checkpoint.training_config)
    if trained is None or name != wanted.name or os.path.isdir(name):
        return
    same = f"{name}@{trained}"
    if trained not in (wanted.revision or "main", "main") and same not in wanted.also_known_as:
        raise CheckpointError(
            f"{checkpoint.path}: trained with revision {trained!r} of tokenizer {name!r}, but {plan.name} is "
            f"evaluated with {wanted.revision or 'main'!r}; set "
            f"{plan.tokenizer_key or 'tokenizer'}.revision: {trained}, or {_also_known_as(plan, [same])}"
        )


def _unknown_names(plan: StagePlan, names: Iterable[str | None]) -> list[str]:
    places = {_place(name) for name in (plan.tokenizer.name, *plan.tokenizer.also_known_as)}
    named = dict.fromkeys(name for name in names if name is not None)
    return [name for name in named if _place(name) not in places]


def _place(name: str) -> str:
    """Return a tokenizer's name, or the real path of its folder, however the path is written."""
    return os.path.realpath(name) if os.path.isdir(name) else name


def _also_known_as(plan: StagePlan, names: Iterable[str]) -> str:
    """Return the remedy for the case that these names denote the stage's own tokenizer."""
    written = ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
    own = json.dumps(plan.tokenizer.name, ensure_ascii=False)
    where = f"add to {plan.tokenizer_key}.also_known_as: [{written}]"
    if not plan.tokenizer_key:
        where = f"write into stages.{plan.name}: `tokenizer: {{name: {own}, also_known_as: [{written}]}}`"
    return f"if they are the same, {where}"


def unknown_tokenizers(plan: StagePlan, plans: Mapping[str, StagePlan]) -> str | None:
    """Return a warning and remedy of tokenizers in config.yaml that `check_agreement` refuses; or None."""
    names: list[str | None] = []
    with contextlib.suppress(EvaluationError):
        for subject in stage_subjects(plan, plans) if not plan.stage.command else ():
            with contextlib.suppress(EvaluationError, OSError):
                training = read_training(subject.checkpoint)
                names.append(training.tokenizer_name if training else None)
    if not (unknown := _unknown_names(plan, names)):
        return None
    return (
        f"{plan.name}: checkpoints trained with other tokenizers than {plan.tokenizer.name!r} will "
        f"not be scored; {_also_known_as(plan, unknown)}"
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

"""Whether a checkpoint is as its stage says: the same tokenizer and sequence length, enough layers."""

from evaluation.checkpoints.format import Checkpoint
from evaluation.checkpoints.placement import layer_count
from evaluation.errors import CheckpointError, ConfigError
from evaluation.settings.computing import GPUS
from evaluation.settings.plan import StagePlan


def check_agreement(plan: StagePlan, checkpoint: Checkpoint) -> None:
    """Refuses a checkpoint that was trained with another tokenizer or sequence length.

    And one that does not say with which, unless the stage takes that for granted. Raises ConfigError
    for one that has fewer layers than GPUs are configured.
    """
    gpus = plan.config.scoring.gpus_per_checkpoint
    if gpus > 1 and not plan.stage.command and gpus > (layers := layer_count(checkpoint)):
        raise ConfigError(
            f"{GPUS}: {gpus}, but {checkpoint.path} has {layers} layers (`num_hidden_layers`) to deal "
            f"over them; set it to {max(1, layers)} or less"
        )
    named = checkpoint.tokenizer_name
    if checkpoint.kind == "nanotron" and named is None and plan.stage.assume is None:
        raise _unknown(plan, checkpoint)
    known = {plan.tokenizer.name, *plan.tokenizer.also_known_as}
    if named is not None and named not in known:
        raise CheckpointError(
            f"{checkpoint.path}: trained with tokenizer {named!r}, but {plan.name} is evaluated with "
            f"{plan.tokenizer.name!r}; if both are the same, add the first to tokenizer.also_known_as"
        )
    if checkpoint.kind == "huggingface":
        _check_positions(plan, checkpoint)
    trained = checkpoint.sequence_length
    if trained is None or trained == plan.sequence_length:
        return
    if trained < plan.sequence_length:
        raise CheckpointError(
            f"{checkpoint.path}: trained on sequences of {trained} tokens, but {plan.name} scores "
            f"{plan.sequence_length}; set sequence_length: {trained}"
        )
    if not plan.stage.allow_shorter_sequences:
        raise CheckpointError(
            f"{checkpoint.path}: trained on sequences of {trained} tokens, but {plan.name} scores "
            f"{plan.sequence_length}; set sequence_length: {trained}, or accept shorter ones with "
            f"stages.{plan.name}.allow_shorter_sequences: true"
        )


def _check_positions(plan: StagePlan, checkpoint: Checkpoint) -> None:
    """A Hugging Face folder does not say how long its sequences were, but how long they can be."""
    inner = checkpoint.model_config.get("text_config")
    config = inner if isinstance(inner, dict) else checkpoint.model_config
    for name in ("max_position_embeddings", "n_positions"):
        positions = config.get(name)
        if type(positions) is int and positions < plan.sequence_length:
            raise CheckpointError(
                f"{checkpoint.path / 'config.json'}: `{name}` is {positions}, but {plan.name} scores "
                f"sequences of {plan.sequence_length} tokens; set sequence_length: {positions}, or "
                "less"
            )


def _unknown(plan: StagePlan, checkpoint: Checkpoint) -> CheckpointError:
    path = checkpoint.path / "config.yaml"
    if checkpoint.training_config is None:
        what = "missing, so its tokenizer and sequence length are not known; copy it"
    else:
        what = "names no tokenizer; write into it which one was used"
    mup = str(bool(checkpoint.use_mup)).lower()
    return CheckpointError(
        f"{path}: {what}, or take {plan.name}'s for granted with stages.{plan.name}.assume: "
        f"{{use_mup: {mup}}}"
    )

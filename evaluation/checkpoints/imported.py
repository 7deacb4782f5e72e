"""The configuration files of a Hugging Face model as Nanotron's trainer would have written them."""

from pathlib import Path
from typing import Any

from evaluation.checkpoints.sharding import VERSION
from evaluation.errors import UnsupportedCheckpoint


def nanotron_model_config(config: Any, folder: Path) -> dict[str, Any]:
    """Nanotron's model_config.json; raises UnsupportedCheckpoint for what Nanotron cannot compute."""
    _refuse_uncomputable(config, folder)
    rope = config.rope_parameters
    factor = rope.get("factor") if rope["rope_type"] == "linear" else None
    common = {
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "hidden_act": config.hidden_act,
        "hidden_size": config.hidden_size,
        "initializer_range": config.initializer_range,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "num_attention_heads": config.num_attention_heads,
        "num_hidden_layers": config.num_hidden_layers,
        "num_key_value_heads": config.num_key_value_heads,
        "pad_token_id": config.pad_token_id,
        "pretraining_tp": 1,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_scaling": None,
        "rope_theta": rope["rope_theta"],
        "rope_interleaved": False,
        "tie_word_embeddings": config.tie_word_embeddings,
        "use_cache": True,
        "vocab_size": config.vocab_size,
        "_attn_implementation": "flash_attention_2",
    }
    if config.model_type == "llama" and factor is None:
        return {"is_llama_config": True, "attention_bias": False, **common}
    window = getattr(config, "sliding_window", None)
    sliding = "sliding_attention" in (getattr(config, "layer_types", None) or ())
    return {
        "is_qwen2_config": True,
        **common,
        "attention_bias": config.model_type == "qwen2",
        "rope_seq_len_interpolation_factor": factor,
        "sliding_window_size": window if sliding else None,
        "no_rope_layer": None,
        "moe_config": None,
        "_use_qkv_packed": True,
        "_use_doc_masking": False,
    }


def _refuse_uncomputable(config: Any, folder: Path) -> None:
    rope = config.rope_parameters
    refused = {
        "rope_type": rope["rope_type"] not in ("default", "linear"),
        "head_dim": (getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        * config.num_attention_heads != config.hidden_size,
        "attention_bias": config.model_type == "llama" and config.attention_bias,
        "mlp_bias": getattr(config, "mlp_bias", False),
        "layer_types": len(set(getattr(config, "layer_types", None) or ())) > 1,
    }  # fmt: skip
    for key, is_refused in refused.items():
        if is_refused:
            value = rope[key] if key in rope else getattr(config, key)
            raise UnsupportedCheckpoint(
                f"{folder / 'config.json'}: {key} {value!r} has no counterpart in Nanotron; evaluate the folder as it is"
            )


def training_config(
    model_config: dict[str, Any],
    *,
    dtype: str,
    tp: int,
    step: int,
    sequence_length: int,
    tokenizer_name: str,
) -> dict[str, Any]:
    """config.yaml, as far as it says something of a model that was not trained here."""
    return {
        "general": {"project": "imported", "run": "imported", "seed": 42, "step": step},
        "model": {
            "dtype": dtype,
            "init_method": {"std": model_config["initializer_range"]},
            "make_vocab_size_divisible_by": 1,
            "model_config": model_config,
        },
        "parallelism": {
            "dp": 1,
            "pp": 1,
            "tp": tp,
            "context_parallel_size": 1,
            "expert_parallel_size": 1,
        },
        "tokenizer": {"tokenizer_name_or_path": tokenizer_name, "tokenizer_revision": None},
        "tokens": {"sequence_length": sequence_length},
    }


def checkpoint_metadata(*, tp: int, step: int, sequence_length: int) -> dict[str, Any]:
    """checkpoint_metadata.json"""
    stage = {
        "name": "imported",
        "start_training_step": 1,
        "consumed_train_samples": 0,
        "sequence_length": sequence_length,
        "consumed_tokens_per_dataset_folder": {},
    }
    metas = {
        "last_train_step": step,
        "consumed_train_samples": 0,
        "consumed_tokens_total": 0,
        "last_stage_idx": 0,
        "data_stages": [stage],
    }
    return {"version": VERSION, "tp": tp, "dp": 1, "cp": 1, "custom_metas": None, "metas": metas}

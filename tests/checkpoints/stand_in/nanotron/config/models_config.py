"""Fields as Nanotron has them: what is not among them is a TypeError."""

import os
from dataclasses import field, make_dataclass
from typing import Any

_COMMON = (
    "bos_token_id eos_token_id hidden_act hidden_size initializer_range intermediate_size "
    "max_position_embeddings num_attention_heads num_hidden_layers attention_bias "
    "num_key_value_heads pad_token_id pretraining_tp rms_norm_eps rope_scaling rope_theta "
    "rope_interleaved tie_word_embeddings use_cache vocab_size _attn_implementation "
    "z_loss_enabled z_loss_coefficient"
).split()
_QWEN = (
    "is_qwen2_config rope_seq_len_interpolation_factor flex_attention_mask sliding_window_size "
    "no_rope_layer _fused_rotary_emb _fused_rms_norm _use_qkv_packed _use_doc_masking "
    "log_attn_probs ring_attn_heads_k_stride moe_config"
).split()
_EXPERTS = (
    "num_experts top_k moe_intermediate_size shared_expert_intermediate_size "
    "router_aux_loss_coef layers enable_shared_expert token_dispatcher_type"
).split()


def _table(name: str, keys: list[str]) -> Any:
    return make_dataclass(name, [(key, Any, field(default=None)) for key in keys])


LlamaConfig = _table("LlamaConfig", ["is_llama_config", *_COMMON])
MoEConfig = _table("MoEConfig", _EXPERTS)
if os.environ["STAND_IN"] != "old":
    Qwen2Config = _table("Qwen2Config", [*_COMMON, *_QWEN])

"""In place of Nanotron: the names that are imported, with its signatures, computing on CPU.

Its model is the tests' own forward pass in float64, rounded.
"""

import os
import sys
import time
from dataclasses import asdict, dataclass, field, make_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from tests.checkpoints.nanotron import forward

models_config = sys.modules[__name__]
for name in ("config", "config.models_config", "models", "parallel", "serialize", "trainer"):
    sys.modules[f"nanotron.{name}"] = models_config

ACT = os.environ["STAND_IN"]

# Fields as Nanotron has them: what is not among them is a TypeError.
_COMMON = (
    "bos_token_id eos_token_id hidden_act hidden_size initializer_range intermediate_size "
    "max_position_embeddings num_attention_heads num_hidden_layers attention_bias "
    "num_key_value_heads pad_token_id pretraining_tp rms_norm_eps rope_scaling rope_theta "
    "rope_interleaved tie_word_embeddings use_cache vocab_size _attn_implementation "
    "z_loss_enabled z_loss_coefficient "
)
_QWEN = (
    "is_qwen2_config rope_seq_len_interpolation_factor flex_attention_mask sliding_window_size "
    "no_rope_layer _fused_rotary_emb _fused_rms_norm _use_qkv_packed _use_doc_masking "
    "log_attn_probs ring_attn_heads_k_stride moe_config"
)
_EXPERTS = (
    "num_experts top_k moe_intermediate_size shared_expert_intermediate_size "
    "router_aux_loss_coef layers enable_shared_expert token_dispatcher_type"
)


def _table(name: str, keys: str) -> Any:
    return make_dataclass(name, [(key, Any, field(default=None)) for key in keys.split()])


LlamaConfig = _table("LlamaConfig", f"is_llama_config {_COMMON}")
MoEConfig = _table("MoEConfig", _EXPERTS)
if ACT != "old":
    Qwen2Config = _table("Qwen2Config", _COMMON + _QWEN)


@dataclass
class ParallelismArgs:
    dp: int
    pp: int
    tp: int


@dataclass
class ParallelContext:
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    context_parallel_size: int = 1
    expert_parallel_size: int = 1
    backend: str = "nccl"

    def __post_init__(self) -> None:
        assert int(os.environ["WORLD_SIZE"]) == 1
        assert int(os.environ["RANK"]) == int(os.environ["LOCAL_RANK"]) == 0
        assert int(os.environ["MASTER_PORT"]) > 0
        assert os.environ["MASTER_ADDR"] == "localhost"


def build_model(
    model_builder: Any,
    parallel_context: Any,
    dtype: torch.dtype,
    target_pp_ranks: Any = None,
    device: Any = None,
) -> Any:
    assert dtype == torch.bfloat16  # as on a GPU
    assert parallel_context == ParallelContext(1, 1, 1)
    return model_builder()


def mark_tied_parameters(model: Any, parallel_context: Any, parallel_config: Any = None) -> None:
    assert parallel_config is not None


def load_weights(
    model: Any, parallel_context: Any, root_folder: Path, filtered_state_dict: Any = None
) -> None:
    """Whole tensors, which the test has put beside the checkpoint."""
    assert isinstance(root_folder, Path)
    model.tensors = load_file(root_folder.parent / "whole.safetensors")


def _misbehave() -> None:
    folder = Path(sys.argv[1])
    if ACT == "die":
        os._exit(9)
    if ACT == "hang":
        time.sleep(600)
    if ACT == "rubbish":
        (folder / "logits.safetensors").write_bytes(b"rubbish" * 9)
        os._exit(0)
    if ACT == "noisy":
        os.write(1, b"\xff\x00 { \n" * 100)


class _ForTraining(nn.Module):
    def __init__(
        self, config: Any, parallel_context: Any, parallel_config: Any, random_states: Any = None
    ) -> None:
        super().__init__()
        assert parallel_config == ParallelismArgs(1, 1, 1)
        self.place = nn.Parameter(torch.zeros(1))
        self.config = config
        self.tensors: dict[str, torch.Tensor] = {}

    def logits(self, ids: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        """(T, V) of a row; or whatever this stand-in is told to do in its place."""
        _misbehave()
        config = asdict(self.config)
        if ACT == "rope":
            config["rope_interleaved"] = not config["rope_interleaved"]
        found = forward(self.tensors, config, ids, positions, mup=self.config._is_using_mup)
        if ACT == "other":
            found = found.flip(-1)
        if ACT == "nan":
            found[0, 0] = torch.nan
        return found.bfloat16()


class LlamaForTraining(_ForTraining):
    def model(self, input_ids: torch.Tensor, input_mask: torch.Tensor) -> torch.Tensor:
        """(T, B, V)"""
        assert input_mask.dtype == torch.bool
        assert input_mask.all()
        return torch.stack([self.logits(row) for row in input_ids], dim=1).float()


class Qwen2ForTraining(_ForTraining):
    def model(self, input_ids: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """(B * T, V)"""
        rows = zip(input_ids, position_ids, strict=True)
        return torch.cat([self.logits(row, places) for row, places in rows])


CONFIG_TO_MODEL_CLASS = {"LlamaConfig": LlamaForTraining, "Qwen2Config": Qwen2ForTraining}

"""Nanotron's Qwen2: its Llama with further features, which decide the class in transformers.

    experts                          Qwen2MoeForCausalLM
    layers without RoPE              SmolLM3ForCausalLM
    sliding window, or q/k/v biases  Qwen2ForCausalLM
    none of these                    LlamaForCausalLM

Further shapes, with E experts, hidden size h, intermediate size m:

    merged_gate_up_proj [E, h, 2m]   x @ W, so transposed; gate first
    merged_down_proj    [E, m, h]    also transposed
"""

import logging
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluation.checkpoints.config_files import Unrepresentable
from evaluation.checkpoints.nanotron_classes.base import (
    TRAINING_KEYS,
    Count,
    Flag,
    Number,
    TensorSource,
    TransformersModel,
    whole_tensor,
)
from evaluation.checkpoints.nanotron_classes.llama import Llama, gated

log = logging.getLogger(__name__)

_WINDOW_KEYS = {"_attn_implementation", "_use_qkv_packed", "flex_attention_mask"}
"""Keys by which Nanotron chooses a kernel, and by this how far a sliding window reaches."""


class Experts(BaseModel):
    """Nanotron's MoEConfig."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_experts: Count
    top_k: Count
    moe_intermediate_size: Count
    shared_expert_intermediate_size: int = Field(0, ge=0, lt=2**31)
    enable_shared_expert: Flag = False
    layers: tuple[int, ...] = Field((-1,), strict=False)
    router_aux_loss_coef: Any = None
    token_dispatcher_type: Any = None

    @property
    def shared_size(self) -> int | None:
        """Width of the shared expert; None if there is none."""
        return self.shared_expert_intermediate_size if self.enable_shared_expert else None

    def are_in(self, layer: int) -> bool:
        """Return whether a layer has experts."""
        return self.layers == (-1,) or layer in self.layers


class Qwen2(Llama):
    """Nanotron's Qwen2Config."""

    heeds_documents: ClassVar[bool] = True
    heeds_mup: ClassVar[bool] = False
    ignored: ClassVar[frozenset[str]] = TRAINING_KEYS - _WINDOW_KEYS

    attention_bias: Flag = False
    sliding_window_size: Count | None = None
    no_rope_layer: Count | None = None
    """Layers n, 2n, … (counted from 1) have no RoPE."""
    rope_seq_len_interpolation_factor: Number | None = None
    moe_config: Experts | None = None
    kernel: Any = Field(None, alias="_attn_implementation")
    is_packed: Any = Field(False, alias="_use_qkv_packed")
    flex_mask: Any = Field(None, alias="flex_attention_mask")

    @model_validator(mode="after")
    def _check_experts(self) -> "Qwen2":
        experts = self.moe_config
        if experts is None:
            return self
        if experts.layers != (-1,) and not {*range(self.layers)}.issuperset(experts.layers):
            raise ValueError(f"`moe_config.layers` has others than 0 to {self.layers - 1}")
        if experts.top_k > experts.num_experts or experts.shared_size == 0:
            raise ValueError(
                "`moe_config.top_k` exceeds `num_experts`, or the shared expert's size is 0"
            )
        for key in ("no_rope_layer", "sliding_window_size"):
            if getattr(self, key) is not None:
                raise Unrepresentable(f"experts (`moe_config`) together with `{key}`")
        return self

    @property
    def sliding_window(self) -> int | None:
        """Tokens that a token attends to in a layer with RoPE, itself included, as it was trained.

        Packed projections always use flash attention, of w tokens. Before them, flex attention had one
        more, some of its masks and sdpa had no window, and flash attention was called by transformers.
        """
        window, kernel = self.sliding_window_size, None if self.is_packed is True else self.kernel
        if window is None or kernel == "sdpa":
            return None
        if kernel == "flex_attention":
            return None if self.flex_mask in ("causal", "document") else window + 1
        if kernel == "flash_attention_2":
            _note_window(window)
        return window

    @property
    def transformers_model(self) -> TransformersModel:
        """The model of transformers that computes the same."""
        if self.moe_config is not None:
            return self._with_experts(self.moe_config)
        every = self.no_rope_layer
        window = self.sliding_window
        if every is None and window is None and not self.attention_bias:
            return super().transformers_model
        roped = [every is None or (layer + 1) % every != 0 for layer in range(self.layers)]
        config: dict[str, Any] = {
            "rms_norm_eps": self.norm_eps,
            "use_sliding_window": window is not None,
            "sliding_window": window,
            # Stated layer by layer: SmolLM3's default puts the window on the layers without RoPE.
            "layer_types": [
                f"{'sliding' if window and has else 'full'}_attention" for has in roped
            ],
        }
        # SmolLM3 has a bias of the output, too, and Qwen2 always has those of q, k and v.
        name, lacking = "Qwen2ForCausalLM", "" if self.attention_bias else "qkv"
        if every is not None:
            config |= {"no_rope_layers": [*map(int, roped)], "attention_bias": self.attention_bias}
            name, lacking = "SmolLM3ForCausalLM", "o" if self.attention_bias else ""
        zeros = {
            f"model.layers.{layer}.self_attn.{part}_proj.bias"
            for layer in range(self.layers)
            for part in lacking
        }
        return TransformersModel(class_name=name, config=config, zeros=frozenset(zeros))

    def _with_experts(self, experts: Experts) -> TransformersModel:
        config = {
            "rms_norm_eps": self.norm_eps,
            "qkv_bias": self.attention_bias,
            "num_experts": experts.num_experts,
            "num_experts_per_tok": experts.top_k,
            "moe_intermediate_size": experts.moe_intermediate_size,
            "shared_expert_intermediate_size": experts.shared_size or 1,
            "norm_topk_prob": False,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [n for n in range(self.layers) if not experts.are_in(n)],
            "use_sliding_window": False,
        }
        shared = ("_gate", ".gate_proj", ".up_proj", ".down_proj")
        zeros = frozenset(
            f"model.layers.{layer}.mlp.shared_expert{part}.weight"
            for layer in range(self.layers)
            for part in (shared if experts.are_in(layer) and experts.shared_size is None else ())
        )
        return TransformersModel(class_name="Qwen2MoeForCausalLM", config=config, zeros=zeros)

    def feed_forward(self, layer: int, ours: str, theirs: str) -> dict[str, TensorSource]:
        """Return the parameters of a layer's feed-forward block, or of its experts."""
        experts, hidden = self.moe_config, self.hidden_size
        if experts is None or not experts.are_in(layer):
            return super().feed_forward(layer, ours, theirs)
        number, size, merged = experts.num_experts, experts.moe_intermediate_size, "experts.merged"
        up, down = (number, hidden, 2 * size), (number, size, hidden)
        sources = {
            f"{ours}.router.weight": whole_tensor(f"{theirs}.gate.weight", (number, hidden)),
            f"{ours}.{merged}_gate_up_proj": whole_tensor(
                f"{theirs}.experts.gate_up_proj", up, transposed=True
            ),
            f"{ours}.{merged}_down_proj": whole_tensor(
                f"{theirs}.experts.down_proj", down, transposed=True
            ),
        }
        if experts.shared_size is not None:
            shared, gate = "shared_expert", "shared_expert_gate.weight"
            sources |= gated(f"{ours}.{shared}", f"{theirs}.{shared}", hidden, experts.shared_size)
            sources[f"{ours}.{gate}"] = whole_tensor(f"{theirs}.{gate}", (1, hidden))
        return sources


@cache
def _note_window(window: int) -> None:
    log.warning(
        "`sliding_window_size` is read as %d tokens, the current one included; without packed projections "
        "(`_use_qkv_packed`), flash attention of some versions of transformers trained with one more",
        window,
    )

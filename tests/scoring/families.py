"""Tiny random models of every causal class of transformers, and what this project does with each.

python -m tests.scoring.families               # writes docs/families.md
python -m tests.scoring.families CLASS …       # prints rows, with the reasons of refusals
"""

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from evaluation.errors import EvaluationError
from evaluation.scoring.engine.check_decoding import ensure_decodable
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.rows import score_requests
from evaluation.scoring.engine.window import Request
from tests.conftest import ROOT

PAGE = ROOT / "docs/families.md"
VOCABULARY = 96

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "num_hidden_layers": 3,
    "max_position_embeddings": 256,
    "intermediate_size": 48,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "is_decoder": True,
}
"""A tiny model's sizes; each class takes those that its configuration has, also by another name."""

DECLARED: dict[str, Any] = {
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "embedding_size": 32,
    "ffn_dim": 48,
    "decoder_layers": 3,
    "decoder_ffn_dim": 48,
    "decoder_attention_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "rotary_dim": 8,
    "mamba_n_groups": 1,
    "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "state_size": 16,
    "attention_window_size": 16,
    "sliding_window": 16,
    "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size_per_layer_input": 8,
    "num_kv_shared_layers": 0,
    "lru_width": 32,
    "logits_scaling": 4.0,
    "logit_scale": 0.25,
    "residual_multiplier": 0.5,
    "embedding_multiplier": 2.0,
    "layer_types": None,
    "mlp_layer_types": None,
}
"""Further sizes, and factors that must not be left out; for classes that have exactly these keys."""

MLA = {"num_key_value_heads": 4, "qk_head_dim": 16, "head_dim": 8}
"""Latent attention has as many heads of keys as of queries."""
PARTICULAR: dict[str, dict[str, Any]] = {
    "AXK1ForCausalLM": MLA,
    "DeepseekV2ForCausalLM": MLA,
    "DeepseekV3ForCausalLM": MLA,
    "Dots1ForCausalLM": {"n_shared_experts": 1},
    "FalconH1ForCausalLM": {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16},
    "GPTNeoForCausalLM": {"attention_types": [[["global", "local", "global"], 1]], "window_size": 16},
    "Glm4MoeLiteForCausalLM": MLA,
    "Lfm2ForCausalLM": {"layer_types": ["conv", "full_attention", "conv"]},
    "Lfm2MoeForCausalLM": {"layer_types": ["conv", "full_attention", "conv"]},
    "Mamba2ForCausalLM": {"num_heads": 4, "head_dim": 16, "n_groups": 1},
    "MiniCPM3ForCausalLM": MLA,
    "Mistral4ForCausalLM": MLA,
    "YoutuForCausalLM": MLA,
    "Zamba2ForCausalLM": {"num_hidden_layers": 54},
}  # fmt: skip
"""Sizes of single classes."""

FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, RuntimeError),
    *(TypeError, ValueError, EvaluationError, StrictDataclassError),
)
"""What a class raises that cannot be built, scored or decoded."""


def class_names() -> list[str]:
    """Return the names of all causal classes of this version of transformers."""
    names: set[str] = set()
    for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        names |= {name} if isinstance(name, str) else set(name)
    return sorted(names)


def built(name: str, **others: Any) -> transformers.PreTrainedModel:
    """Return a tiny random model of a class; norms and biases differ from 1 and 0."""
    model_class = getattr(transformers, name)
    config_class = model_class.config_class
    default = config_class().to_dict()
    keys = {**default, **getattr(config_class, "attribute_map", {})}
    given = {key: value for key, value in SIZES.items() if key in keys}
    given |= {key: value for key, value in DECLARED.items() if key in default}
    given |= PARTICULAR.get(name, {}) | others
    torch.manual_seed(0)
    config = config_class(**given)
    with torch.device("meta"):
        size = sum(part.numel() for part in model_class(config).parameters())
    if size > 10e6:
        raise ValueError(f"its tiny model has {size / 1e6:.0f} million parameters")
    model = model_class(config).eval().requires_grad_(False).float()
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def abilities(name: str) -> list[str]:
    """Return whether a class is scored, scored with compiled layers, and decoded."""
    try:
        model = built(name)
    except FAULTS as error:
        return [f"not tried: {_reason(error)}"] * 3
    scored = _try(_scored, model)
    if scored != "yes":
        return [scored, *["no: not scored"] * 2]
    return [scored, _try(_compiled, model), _try(_decoded, model)]


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _try(act: Callable[[transformers.PreTrainedModel], None], model: Any) -> str:
    try:
        act(model)
    except EvaluationError as error:
        return f"no: {_reason(error)}"
    return "yes"


def _scored(model: transformers.PreTrainedModel) -> None:
    engine = Engine(model, row_tokens=64, device="cpu")
    score_requests(engine, [Request((1, 5, 6), (n,)) for n in range(9)])


def _compiled(model: transformers.PreTrainedModel) -> None:
    torch._dynamo.reset()  # graphs of all classes together would be too many
    engine = Engine(model, row_tokens=256, device="cpu", compiler="aot_eager")
    for is_text in (True, False):
        engine.ensure_checked([256], is_text=is_text)


def _decoded(model: transformers.PreTrainedModel) -> None:
    ensure_decodable(Engine(model, row_tokens=64, device="cpu"), 40)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Silence transformers and the compiler."""
    verbosity = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers.utils.logging.set_verbosity(verbosity)


def group(able: Sequence[str]) -> str:
    """Return what a class is, as the page has it."""
    if any("not tried" in one for one in able):
        return "not tried"
    kinds = zip(("scored", "compiled", "decoded"), able, strict=True)
    return ", ".join(kind for kind, one in kinds if one.startswith("yes")) or "refused"


def page(groups: Mapping[str, Sequence[str]]) -> str:
    """Return the page with the classes of each group."""
    lines = [
        f"- **{kind}** ({len(names)}): {', '.join(f'`{name}`' for name in names)}"
        for kind, names in groups.items()
    ]
    return f"""\
# Which model classes work

`python -m tests.scoring.families` writes this page. It builds a tiny random model of every causal class of
transformers {transformers.__version__}, and tries it in float32 on a CPU.

- **scored**: Tier2 and Tier3 give the class's own log-probabilities. If not, the job refuses the class.
- **compiled**: so do layers that are compiled, as on a GPU. If not, they run uncompiled, which is slower.
- **decoded**: Tier4 and Tier5 write answers, with the class's own logits. If not, the job refuses the class.

Nothing has to be set: before the first score and the first answer, each job compares the logits with the
class's own. Real models of a class may have other parts than the tiny one, so that check decides.

{chr(10).join(lines)}

Those that are not tried could not be built tiny.
"""


if __name__ == "__main__":
    with silent():
        asked = sys.argv[1:]
        groups: dict[str, list[str]] = {}
        for name in asked or class_names():
            able = abilities(name)
            print(name, *able, sep=" | ", flush=True)
            groups.setdefault(group(able), []).append(name)
    if not asked:
        PAGE.write_text(page(groups), encoding="utf-8")

"""Checkpoints to freeze numbers of: a tiny one of every causal class, and a short training of one."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tests.frozen.checkout import SHARED

VOCABULARY = 96
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY, "num_hidden_layers": 3, "max_position_embeddings": 256, "intermediate_size": 48,
    "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "initializer_range": 0.3, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "is_decoder": True,
}  # fmt: skip
"""A tiny model's sizes; each class takes those that its configuration has, also by another name."""
OTHER_SIZES: dict[str, Any] = {
    "moe_intermediate_size": 24, "shared_expert_intermediate_size": 24, "num_experts": 4,
    "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "embedding_size": 32, "ffn_dim": 48, "decoder_layers": 3, "decoder_ffn_dim": 48,
    "decoder_attention_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "rotary_dim": 8, "sliding_window": 16,
    "logits_scaling": 4.0, "logit_scale": 0.25, "residual_multiplier": 0.5, "embedding_multiplier": 2.0,
    "layer_types": None, "mlp_layer_types": None,
}  # fmt: skip
"""Further sizes, and factors that must not be left out; for classes that have exactly these keys."""
MOST_PARAMETERS = 5e6


def tiny_classes(folder: Path) -> None:
    """Write a random model of each class that can be built tiny, as a Hugging Face folder of its name."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    names: set[str] = set()
    for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        names |= {name} if isinstance(name, str) else set(name)
    for name in sorted(names):
        try:
            _tiny(name).save_pretrained(folder / name)
        except Exception as error:  # noqa: BLE001 (whatever it brings up, the class is named)
            print(f"{name}: left out ({type(error).__name__})", flush=True)


def _tiny(name: str) -> transformers.PreTrainedModel:
    model_class = getattr(transformers, name)
    config_class = model_class.config_class
    default = config_class().to_dict()
    keys = {**default, **getattr(config_class, "attribute_map", {})}
    given = {key: value for key, value in SIZES.items() if key in keys}
    config = config_class(**given | {k: v for k, v in OTHER_SIZES.items() if k in default})
    with torch.device("meta"):
        if sum(part.numel() for part in model_class(config).parameters()) > MOST_PARAMETERS:
            raise ValueError("not tiny")
    torch.manual_seed(0)
    model = model_class(config).eval().requires_grad_(False).float()
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def short_training(tokenizer: Path, steps: dict[Path, int]) -> None:
    """Train a tiny Llama on text of a few hundred pages; save it where each number of steps is done."""
    words = transformers.AutoTokenizer.from_pretrained(tokenizer)
    path = SHARED / "data/Salesforce/wikitext/wikitext-103-raw-v1/test.parquet"
    ids = torch.tensor(words("".join(pq.read_table(path)["text"].to_pylist()[:1500]))["input_ids"])
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(words), hidden_size=48, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        tie_word_embeddings=True, bos_token_id=words.bos_token_id, eos_token_id=words.eos_token_id,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, max(steps.values()) + 1):
        starts = torch.randint(len(ids) - 65, (8,))
        batch = torch.stack([ids[start : start + 65] for start in starts])  # (8, 65)
        model(batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        for folder in [folder for folder, when in steps.items() if when == step]:
            model.save_pretrained(folder)


def plain_scores(model: Any, requests: list[dict[str, list[int]]]) -> list[float]:
    """Return the log-probability of each continuation by one forward pass of the class's own for each."""
    sums = []
    for request in requests:
        context, rest = request["context_tokens"], request["continuation_tokens"]
        with torch.inference_mode():
            logits = model(torch.tensor([context + rest]), use_cache=False).logits[0].double()
        nats = logits.log_softmax(-1)[len(context) - 1 : -1]
        sums.append(float(nats.gather(1, torch.tensor(rest)[:, None]).sum()))
    return sums

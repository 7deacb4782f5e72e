"""Write `references.json.gz`: ids that the slow classes of transformers 4 give to 300 texts.

    python -m venv v4; v4/bin/pip install transformers==4.57.3 sentencepiece protobuf jinja2
    v4/bin/python -m tests.tokenizers.make_references

transformers 5 has no such classes. The models are stored, too, so that another version of
SentencePiece cannot train others.
"""

import base64
import gzip
import json
import random
import tempfile
from pathlib import Path

from tests.tokenizers.kinds import PIECES, train_pieces, write_folder

FILE = Path(__file__).with_name("references.json.gz")

FIXED = [
    *("", " ", "  ", "a", "Hello world", " Hello", "    return x", "\tx", "a\nb", "a\r\nb\n"),
    *("3.14", "日本語", "🦊", "e\u0301", "trailing  ", "<s>Hello", "Hello <s>.", "a</s> x"),
    *("<unk> x", "<|im_start|>user\nhi<|im_end|>\n", " <|im_start|>", "x <|im_end|>  y"),
    *("▁x", "a▁b", "▁", "<0x0A>", "<s> <s>", "<s>  x"),
]

PARTS = [
    *(" ", "  ", "\n", "\t", "a", "the", "The", "é", "e\u0301", "日", "🦊", "1", "<s>", "</s>"),
    *("<unk>", "<|im_start|>", "<|im_end|>", "▁", "x", "<", "\u3000", "\x00", "\r\n", "ﬁ"),
]


def texts() -> list[str]:
    draw = random.Random(4)
    drawn = ("".join(draw.choices(PARTS, k=draw.randint(1, 10))) for _ in range(272))
    return [*FIXED, *drawn]


def main() -> None:
    from transformers import AutoTokenizer

    found = {}
    for name, (options, config) in PIECES.items():
        model = train_pieces(**options)
        with tempfile.TemporaryDirectory() as place:
            folder = write_folder(Path(place) / "t", config, tokenizer__model=model)
            (folder / "config.json").write_text('{"model_type": "llama"}')
            tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=False)
        found[name] = {
            "model": base64.b64encode(model).decode(),
            "config": config,
            "ids": tokenizer(texts(), add_special_tokens=False)["input_ids"],
            "bos_eos": [tokenizer.bos_token_id, tokenizer.eos_token_id],
        }
    FILE.write_bytes(gzip.compress(json.dumps(found).encode(), mtime=0))


if __name__ == "__main__":
    main()

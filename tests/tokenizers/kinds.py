"""Tokenizers of all usual kinds, trained in moments on a few lines of text."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = [
    "The quick brown fox jumps over the lazy dog, again and again.",
    "Question: who jumps over whom?\nAnswer: the fox, over the dog.",
    "def f(x):\n    if x > 0:\n        return [x + 1, 2]\n    return None\n",
    "naïve café 日本語 🦊 x = {1: 'a', 2: 'b'}  # Zürich, 3.14159",
    'user assistant system HELLO World Grüße 0123456789 ~`@$%^&*|\\<>;"',
] * 5

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

TURNS = ("<|im_start|>", "<|im_end|>")

_SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def train_pieces(**options: Any) -> bytes:
    """A SentencePiece model, by default like Llama 2's."""
    model = io.BytesIO()
    given = {
        "vocab_size": 420,
        "model_type": "bpe",
        "byte_fallback": True,
        "minloglevel": 2,
        "character_coverage": 0.98,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "split_digits": True,
        "allow_whitespace_only_pieces": True,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=model, **given
    )
    return model.getvalue()


def added(*texts: str, first: int = 420) -> dict[str, Any]:
    """`added_tokens_decoder` with special tokens of these texts."""
    flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False)
    tokens = enumerate(texts, start=first)
    return {str(number): {"content": text, "special": True, **flags} for number, text in tokens}


def write_folder(folder: Path, config: dict[str, Any], **files: bytes | str) -> Path:
    """A tokenizer's folder with tokenizer_config.json and these files."""
    folder.mkdir(parents=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


_LLAMA = {**_SPECIAL, "tokenizer_class": "LlamaTokenizer", "chat_template": CHATML}

PIECES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama": ({}, {**_LLAMA, "legacy": True}),
    "no dummy prefix": ({"add_dummy_prefix": False}, _LLAMA),
    "gemma": ({"add_dummy_prefix": False}, {**_SPECIAL, "tokenizer_class": "GemmaTokenizer"}),
    "unigram": ({"model_type": "unigram", "vocab_size": 340}, {**_LLAMA, "legacy": True}),
    "no class": ({}, {}),
}
"""Options of the training, and tokenizer_config.json, of SentencePiece models."""


def _byte_level(pre_tokenizer: Any, normalizer: Any = None, **special: Any) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer is not None:
        made.normalizer = normalizer
    made.train_from_iterator(TEXT, _trainer(["<|endoftext|>", *TURNS]))
    return made


def _trainer(special: list[str], **options: Any) -> trainers.BpeTrainer:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return trainers.BpeTrainer(
        vocab_size=420,
        show_progress=False,
        initial_alphabet=alphabet,
        special_tokens=special,
        **options,
    )


def _fallback(normalizer: Any, pre_tokenizer: Any, decoder: list[Any]) -> tokenizers.Tokenizer:
    """BPE of characters with byte fallback, as tokenizer.json of Llama, Mistral and Gemma."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *TURNS]
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    trained = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    if pre_tokenizer is not None:
        trained.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=420, show_progress=False, special_tokens=special)
    trained.train_from_iterator([text.replace(" ", "▁") for text in TEXT], trainer)
    content = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in content["merges"]]
    made.model = models.BPE(
        content["vocab"], merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True
    )
    if normalizer is not None:
        made.normalizer = normalizer
    if pre_tokenizer is not None:
        made.pre_tokenizer = pre_tokenizer
    made.decoder = decoders.Sequence(decoder)
    made.add_special_tokens([*special[:3], *TURNS])
    return made


_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _qwen() -> tokenizers.Tokenizer:
    split = pre_tokenizers.Split(Regex(_QWEN), "isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return _byte_level(pre_tokenizers.Sequence([split, bytes_]), normalizers.NFC())


def _llama() -> tokenizers.Tokenizer:
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    strip = [decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    decoder = [decoders.Replace("▁", " "), decoders.ByteFallback(), *strip]
    made = _fallback(normalizer, None, decoder)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return made


def _gemma() -> tokenizers.Tokenizer:
    decoder = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return _fallback(normalizers.Replace(" ", "▁"), None, decoder)


def _mistral() -> tokenizers.Tokenizer:
    metaspace = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    strip = [decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    decoder = [decoders.Replace("▁", " "), decoders.ByteFallback(), *strip]
    return _fallback(None, metaspace, decoder)


_ENDING = {"eos_token": "<|endoftext|>", "chat_template": CHATML}

JSON: dict[str, tuple[Callable[[], tokenizers.Tokenizer], dict[str, Any]]] = {
    "gpt2": (
        lambda: _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
        {**_ENDING, "tokenizer_class": "GPT2Tokenizer"},
    ),
    "qwen": (_qwen, {**_ENDING, "tokenizer_class": "Qwen2Tokenizer"}),
    "qwen, named llama": (_qwen, {**_ENDING, "tokenizer_class": "LlamaTokenizer", "legacy": True}),
    "llama.json": (_llama, {**_LLAMA, "legacy": False, "add_bos_token": True}),
    "llama.json, named qwen": (_llama, {**_LLAMA, "tokenizer_class": "Qwen2Tokenizer"}),
    "gemma.json": (_gemma, {**_SPECIAL, "tokenizer_class": "GemmaTokenizer"}),
    "mistral.json": (_mistral, {**_LLAMA, "add_prefix_space": True}),
}
"""Functions that train tokenizer.json, and the tokenizer_config.json beside it."""


def write_kinds(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and folder of every kind."""
    for number, (name, (options, config)) in enumerate(PIECES.items()):
        model = train_pieces(**options)
        yield name, write_folder(folder / f"pieces{number}", config, tokenizer__model=model)
    for number, (name, (make, config)) in enumerate(JSON.items()):
        text = make().to_str()
        yield name, write_folder(folder / f"json{number}", config, tokenizer__json=text)

"""What is loaded, copied, refused and remarked: files as they are, and nothing that cannot be right."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from evaluation.errors import SourceError
from evaluation.prefill.caches import read_task
from evaluation.prefill.tiers import PREFILLS
from evaluation.prefill.tokenizers import fetch_tokenizer
from evaluation.tokenizers.fast import FastTokenizer
from evaluation.tokenizers.files import write_plain_copy
from evaluation.tokenizers.loading import load_tokenizer
from evaluation.tokenizers.pieces import PieceTokenizer
from evaluation.tokenizers.self_check import REPORT
from tests.prefill.plans import make_plan
from tests.tokenizers.kinds import added
from tests.workflow.world import write_rows


def changed(folder: Path, **config: Any) -> Path:
    """The folder with other keys in tokenizer_config.json."""
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return folder


@pytest.fixture
def llama(kinds: dict[str, Path], tmp_path: Path) -> Path:
    """A SentencePiece model's folder of its own."""
    return Path(shutil.copytree(kinds["llama"], tmp_path / "llama"))


@pytest.fixture
def qwen(kinds: dict[str, Path], tmp_path: Path) -> Path:
    """The folder of a tokenizer.json of its own."""
    return Path(shutil.copytree(kinds["qwen"], tmp_path / "qwen"))


@pytest.mark.parametrize("kind", ["llama", "llama.json"])
def test_files_are_copied_and_nothing_is_written_anew(
    kinds: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    plan = make_plan(tmp_path / "cache", kinds[kind])
    fetch_tokenizer(plan)
    for path in kinds[kind].iterdir():
        assert (plan.tokenizer_folder / path.name).read_bytes() == path.read_bytes()
    texts = ["<|im_start|>user\n", "<s>Hello", "  x"]
    ours = load_tokenizer(plan.tokenizer_folder, use_fast=True)
    assert ours.encode(texts) == load_tokenizer(kinds[kind], use_fast=True).encode(texts)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a class that shifts ids": ({"tokenizer_class": "XLMRobertaTokenizerFast"}, "may shift ids"),
    "an unknown class": ({"tokenizer_class": "MagicTokenizer"}, "MagicTokenizer may shift ids"),
    "legacy: false": ({"legacy": False}, "`legacy: false` has rules of its own"),
    "added tokens": ({"added_tokens_decoder": added("<|x|>")}, "tokens that its model has not"),
    "more special tokens": (
        {"additional_special_tokens": ["<|x|>"]},
        "tokens that its model has not",
    ),
    "a piece as an added token": ({"extra_special_tokens": ["▁"]}, "it has added tokens"),
    "an end that is no piece": ({"eos_token": "<|end|>"}, "tokens that its model has not"),
}
"""Keys of tokenizer_config.json beside a model, for which the model alone does not give the ids."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_model_alone_does_not_decide_is_refused(llama: Path, name: str) -> None:
    config, reason = REFUSED[name]
    with pytest.raises(SourceError, match=rf"{reason}; supply a tokenizer\.json"):
        load_tokenizer(changed(llama, **config), use_fast=False)


@pytest.mark.parametrize("use_fast", [True, False])
def test_a_folder_without_a_vocabulary_is_refused(llama: Path, use_fast: bool) -> None:
    (llama / "tokenizer.model").unlink()
    with pytest.raises(SourceError, match=r"is missing .there is tokenizer_config.json.; supply"):
        load_tokenizer(llama, use_fast=use_fast)


def test_use_fast_chooses_between_two_vocabularies(llama: Path, kinds: dict[str, Path]) -> None:
    shutil.copy(kinds["gemma.json"] / "tokenizer.json", llama)
    assert isinstance(load_tokenizer(llama, use_fast=True), FastTokenizer)
    assert isinstance(load_tokenizer(llama, use_fast=False), PieceTokenizer)


def test_a_tokenizer_that_gives_no_sentence_back_is_refused(qwen: Path, tmp_path: Path) -> None:
    path = qwen / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "decoder": None}))
    with pytest.raises(SourceError, match=r"'The quick brown fox.* its vocabulary or decoder"):
        fetch_tokenizer(make_plan(tmp_path / "cache", qwen))


def test_a_token_that_only_the_configuration_has_is_a_difference(
    qwen: Path, tmp_path: Path
) -> None:
    size = len(load_tokenizer(qwen, use_fast=True).vocabulary)
    changed(qwen, added_tokens_decoder=added("[INST]", first=size))
    with pytest.raises(
        SourceError, match=r"'\[INST\] hi .*' becomes .* but .* by tokenizers .*`added_tokens`"
    ):
        fetch_tokenizer(make_plan(tmp_path / "cache", qwen))


@pytest.mark.parametrize(("kind", "prepend_bos", "said"), [
    ("llama", False, "puts <s> before each text by itself, but `tokenizer.prepend_bos` is false"),
    ("llama.json", False, "write `prepend_bos: true`; if not, write `\"add_bos_"),
    ("mistral.json", True, "does not put <s> before"),
    ("qwen", False, None),
])  # fmt: skip
def test_bos_of_the_files_and_of_the_configuration(
    kinds: dict[str, Path], kind: str, prepend_bos: bool, said: str | None, tmp_path: Path
) -> None:
    plan = make_plan(tmp_path / "cache", kinds[kind], prepend_bos=prepend_bos)
    fetch_tokenizer(plan)
    report = json.loads((plan.tokenizer_folder / REPORT).read_text())
    remarks = [one for one in report["remarks"] if "prepend_bos" in one]
    assert len(remarks) == (said is not None)
    assert said is None or said in remarks[0]


ROWS = [
    {"context": "the cat sat on a m", "choices": ["at while dogs ran", "ap while dogs ran"]},
    {"context": "<s>the cat sat on a", "choices": [" mat", " map"]},
    {"context": "the fox", "choices": [" jumps", " runs"]},
]


@pytest.mark.parametrize("kind", ["llama", "llama.json", "gemma.json", "mistral.json"])
def test_bos_stands_once_and_borders_are_counted(
    kinds: dict[str, Path], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_rows(tmp_path / "m/train.jsonl", ROWS)
    fields = {"dataset": "d", "choices": "choices", "gold": "0", "context": "{{ context }}"}
    tasks = {"t": fields}
    options = {"mirrors": {"d": str(tmp_path / "m")}, "sequence_length": 64, "prepend_bos": True}
    plan = make_plan(tmp_path / "cache", kinds[kind], tasks=tasks, **options)
    PREFILLS["tier3"].make(plan, "t")
    task, tokenizer = (
        read_task(plan.cache_folder("tier3", "t")),
        load_tokenizer(kinds[kind], use_fast=True),
    )
    for item in task.items:
        for context in item.contexts:
            assert context.tokens[0] == tokenizer.bos_token_id
            assert tokenizer.bos_token_id not in context.tokens[1:]
    counted = task.meta["across_border"]
    assert counted["questions"] <= counted["candidates"]
    if counted["questions"]:
        assert f"of 3 questions, {counted['questions']} (the first: " in caplog.text


@pytest.mark.parametrize("kind", ["llama.json, named qwen", "qwen, named llama"])
def test_another_program_reads_the_plain_copy_alike(
    kinds: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    """As vLLM does, by the class that tokenizer_config.json names."""
    theirs = AutoTokenizer.from_pretrained(write_plain_copy(kinds[kind], tmp_path / "copy"))
    texts = [" Hello", "  12 x\n", "<|im_start|>user", "<s>a"]
    ours = load_tokenizer(kinds[kind], use_fast=True)
    assert theirs(texts, add_special_tokens=False)["input_ids"] == ours.encode(texts)
    ids = ours.encode(["    return x"])[0]
    assert theirs.decode(ids, skip_special_tokens=False) == ours.decode(ids)

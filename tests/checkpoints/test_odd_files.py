"""Odd checkpoints, case by case: one sentence that names the file, within seconds, exit code 1."""

import errno
import json
import os
import shutil
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig

from evaluation.__main__ import main
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError
from tests.checkpoints.nanotron import TRAINING, llama, make_checkpoint, shard_paths
from tests.checkpoints.test_write import SIZES, logits, save_model

NORM = "model.final_layer_norm.pp_block.weight"
QKV = "model.decoder.1.pp_block.attn.qkv_proj.weight"

Case = tuple[Callable[[Path], object], str]


def norm(folder: Path) -> Path:
    return shard_paths(folder, NORM)[0]


def put_header(path: Path, content: Any, length: int | None = None) -> None:
    """Replaces a file's header, leaving its data; a string is written as it is."""
    whole = path.read_bytes()
    old = struct.unpack("<Q", whole[:8])[0]
    text = content if isinstance(content, str) else json.dumps(content)
    header = text.encode()
    path.write_bytes(struct.pack("<Q", length or len(header)) + header + whole[8 + old :])


def entry(**changes: Any) -> dict[str, Any]:
    return {"data": {"dtype": "F32", "shape": [32], "data_offsets": [0, 128]} | changes}


def metadata(folder: Path, **changes: str) -> None:
    path = shard_paths(folder, QKV)[0]
    whole = path.read_bytes()
    header = json.loads(whole[8 : 8 + struct.unpack("<Q", whole[:8])[0]])
    header["__metadata__"] |= changes
    put_header(path, header)


def config(folder: Path, **changes: Any) -> None:
    path = folder / "model_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def training(folder: Path, **changes: Any) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(TRAINING | changes))


def without(folder: Path, section: str) -> None:
    rest = {key: value for key, value in TRAINING.items() if key != section}
    (folder / "config.yaml").write_text(yaml.safe_dump(rest))


def text(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content)


def in_place(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def listen(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


def sparse(path: Path, size: int) -> None:
    with open(path, "wb") as file:
        file.truncate(size)


def link(source: Path, target: Path) -> None:
    source.symlink_to(target, target_is_directory=True)


DEEP = "[" * 100_000

NANOTRON: dict[str, Case] = {
    # what config.yaml alone says
    "no config.yaml": (lambda f: (f / "config.yaml").unlink(), "config.yaml is missing.*muP"),
    "a cut number": (
        lambda f: text(f, "config.yaml", yaml.safe_dump(TRAINING)[:-3]),
        "config.yaml.*does not end",
    ),
    "cut before tokens": (lambda f: without(f, "tokens"), "config.yaml: `tokens` is missing"),
    "cut before tokenizer": (lambda f: without(f, "tokenizer"), "`tokenizer` is missing"),
    "no init_method": (lambda f: training(f, model={"dtype": "float32"}), "`model.init_method`"),
    "no length": (lambda f: training(f, tokens={"train_steps": 1}), "`tokens.sequence_length`"),
    "no tokenizer name": (lambda f: training(f, tokenizer={"x": 1}), "tokenizer_name_or_path"),
    "empty config.yaml": (lambda f: text(f, "config.yaml", ""), "config.yaml: .*expected keys"),
    "muP as text": (
        lambda f: training(f, model={"init_method": {"use_mup": "true"}}),
        "use_mup` is 'true'; expected true or false",
    ),
    "length as float": (lambda f: training(f, tokens={"sequence_length": 2048.0}), "is 2048.0"),
    "length as true": (lambda f: training(f, tokens={"sequence_length": True}), "is True"),
    "length of 2^63": (lambda f: training(f, tokens={"sequence_length": 2**63}), "up to"),
    "a number for a tokenizer": (
        lambda f: training(f, tokenizer={"tokenizer_name_or_path": 7}),
        "tokenizer_name_or_path` is 7",
    ),
    "a list for tokens": (lambda f: training(f, tokens=[1]), "`tokens` is"),
    "step as text": (lambda f: training(f, general={"step": "5"}), "general.step"),
    "a YAML key twice": (
        lambda f: text(f, "config.yaml", yaml.safe_dump(TRAINING) + "tokens: {}\n"),
        "the key 'tokens' stands in line",
    ),
    "deep YAML": (lambda f: text(f, "config.yaml", DEEP), "config.yaml: not YAML"),
    "half a letter in YAML": (
        lambda f: text(f, "config.yaml", yaml.safe_dump(TRAINING) + 'x: "\\ud800"\n'),
        "config.yaml: .*invalid Unicode",
    ),
    "YAML of another type": (
        lambda f: text(f, "config.yaml", 'a: !!timestamp "x"\nb: !!int ""\n'),
        "config.yaml: not YAML",
    ),
    # model_config.json
    "deep JSON": (lambda f: text(f, "model_config.json", DEEP), "model_config.json: not JSON"),
    "deep tables": (
        lambda f: text(f, "model_config.json", '{"a":' * 100_000),
        "model_config.json: not JSON",
    ),
    "a JSON key twice": (
        lambda f: text(f, "model_config.json", '{"vocab_size": 60, "vocab_size": 61}'),
        "the key 'vocab_size' is there twice",
    ),
    "half a letter": (
        lambda f: config(f, hidden_act="\ud800"),
        "model_config.json: .*not valid Unicode",
    ),
    "endless digits": (
        lambda f: text(f, "model_config.json", '{"vocab_size": ' + "9" * 5000 + "}"),
        "model_config.json: not JSON",
    ),
    "10^6 layers": (lambda f: config(f, num_hidden_layers=10**6), "num_hidden_layers` is 1000000"),
    "9,999 layers": (lambda f: config(f, num_hidden_layers=9_999), "9999 layers"),
    "9,999 layers of experts": (
        lambda f: config(
            f,
            is_llama_config=False,
            is_qwen2_config=True,
            num_hidden_layers=9_999,
            moe_config={"num_experts": 9, "top_k": 1, "moe_intermediate_size": 4},
        ),
        "9999 layers",
    ),
    "a float for heads": (lambda f: config(f, num_attention_heads=4.0), "is 4.0"),
    "text for layers": (lambda f: config(f, num_hidden_layers="2"), "is '2'"),
    "a table for layers": (lambda f: config(f, num_hidden_layers={"a": 1}), r"keys and values \(1\)"),
    "true for a size": (lambda f: config(f, hidden_size=True), "is True"),
    "a negative size": (lambda f: config(f, intermediate_size=-24), "is -24"),
    "2^63 rows": (lambda f: config(f, vocab_size=2**63), "vocab_size"),
    "a sparse configuration": (
        lambda f: sparse(f / "model_config.json", 1 << 40),
        "larger than any configuration",
    ),
    "a folder for a configuration": (
        lambda f: in_place(f / "model_config.json", Path.mkdir),
        "model_config.json: cannot be read .it is a folder",
    ),
    "a link to nowhere": (
        lambda f: in_place(f / "model_config.json", lambda p: link(p, f / "gone")),
        "model_config.json: cannot be read .No such file",
    ),
    # pipes, sockets, devices
    "a pipe for weights": (lambda f: in_place(norm(f), os.mkfifo), "it is a pipe"),
    "a pipe for config.yaml": (lambda f: in_place(f / "config.yaml", os.mkfifo), "it is a pipe"),
    "a pipe for model_config.json": (
        lambda f: in_place(f / "model_config.json", os.mkfifo),
        "it is a pipe",
    ),
    "a pipe for config.json": (lambda f: os.mkfifo(f / "config.json"), "it is a pipe"),
    "a socket for weights": (lambda f: in_place(norm(f), listen), "it is a socket"),
    "a device for weights": (
        lambda f: in_place(norm(f), lambda p: link(p, Path("/dev/zero"))),
        "it is a device",
    ),
    # links that lead in circles
    "a link to a parent": (
        lambda f: link(f / "model/model/loop", f / "model"),
        "loop: a link to the folder .*/model, which is not followed",
    ),
    "two links to parents": (
        lambda f: [link(f / "model/model" / name, f / "model") for name in "ab"],
        "a link to the folder .*/model, which is not followed",
    ),
    "a link to everything": (
        lambda f: link(f / "model/model/all", Path("/")),
        "all: a link to the folder /, which is not followed",
    ),
    "weights that are everything": (
        lambda f: (shutil.rmtree(f / "model"), link(f / "model", Path("/"))),
        "a link to the folder .*, which is not followed",
    ),
    "a link to itself": (
        lambda f: in_place(norm(f), lambda p: link(p, p)),
        "Too many levels of symbolic links",
    ),
    # headers
    "a header of 2^63 bytes": (lambda f: put_header(norm(f), entry(), 2**63), "bytes long"),
    "a header of 99 MB": (lambda f: put_header(norm(f), entry(), 99_000_000), "ends early"),
    "a sparse file": (lambda f: sparse(norm(f), 1 << 40), "its header is not JSON|no tensors"),
    "a sparse file of a sound header": (
        lambda f: [
            put_header(norm(f), entry(shape=[2**38], data_offsets=[0, 2**40])),
            os.truncate(norm(f), 8 + len(json.dumps(entry(shape=[2**38], data_offsets=[0, 2**40]))) + 2**40),
        ],
        "shape .274877906944,., but the configuration",
    ),
    "65 dimensions": (
        lambda f: put_header(norm(f), entry(shape=[32] + [1] * 64)),
        "has 65 dimensions",
    ),
    "a shape of 10^5 dimensions": (
        lambda f: put_header(norm(f), entry(shape=[32] + [1] * 10**5)),
        "has 100001 dimensions",
    ),
    "a dimension of 2^63": (lambda f: put_header(norm(f), entry(shape=[2**63])), "has shape"),
    "a negative dimension": (lambda f: put_header(norm(f), entry(shape=[-32])), "has shape"),
    "a float dimension": (lambda f: put_header(norm(f), entry(shape=[32.0])), "has shape"),
    "a true dimension": (lambda f: put_header(norm(f), entry(shape=[True])), "has shape"),
    "text for offsets": (lambda f: put_header(norm(f), entry(data_offsets="ab")), "data_offsets"),
    "offsets beyond 2^63": (
        lambda f: put_header(norm(f), entry(data_offsets=[2**64, 2**64 + 128])),
        "data_offsets",
    ),
    "a header key twice": (
        lambda f: put_header(norm(f), json.dumps(entry())[:-1] + ', "data": 1}'),
        "the key 'data' is there twice",
    ),
    "a deep header": (lambda f: put_header(norm(f), DEEP), "its header is not JSON"),
    "an empty header": (lambda f: put_header(norm(f), {}), "holds no tensors"),
    "half a letter in a header": (
        lambda f: put_header(norm(f), {"\ud800": entry()["data"]}),
        "where a Nanotron weight file holds one",
    ),
    "metadata of numbers": (
        lambda f: put_header(norm(f), {"__metadata__": {"a": 1}, **entry()}),
        "not a table of strings",
    ),
    "slices of 10^9": (
        lambda f: metadata(f, local_global_slices_pairs="0,9" + "9" * 9 + ",None|None,None,None#0,1,None|None,None,None"),
        "are not regions",
    ),
    "slices in Arabic digits": (
        lambda f: metadata(f, local_global_slices_pairs="٠,١,None|None,None,None#0,1,None|None,None,None"),
        "are not regions",
    ),
    "a shape of endless digits": (
        lambda f: metadata(f, unsharded_shape="(" + "9" * 5000 + ",)"),
        "is not a shape",
    ),
    "a thousand regions both ways": (
        lambda f: metadata(
            f,
            unsharded_shape="(4000, 4000)",
            local_global_slices_pairs=";".join(
                f"0,1,None|0,1,None#{n},{n + 1},None|{n},{n + 1},None" for n in range(1100)
            ),
        ),
        "slices",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "7"
    make_checkpoint(folder, llama(), tp=2)
    return folder


@pytest.mark.parametrize("name", NANOTRON)
def test_odd_nanotron_checkpoints(
    sound: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "7"))
    damage, named = NANOTRON[name]
    damage(folder)
    with pytest.raises(CheckpointError, match=named) as raised:
        check_complete(open_checkpoint(folder))
    assert len(str(raised.value)) < 700
    assert main(["inspect", str(folder)]) == 1
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    # How deep Python was when it gave up depends on who called.
    assert line.partition("exceeded")[0] == f"error: {raised.value}".partition("exceeded")[0]


def pretrained(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def index(folder: Path, places: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def tensors(folder: Path, changes: dict[str, torch.Tensor | None]) -> None:
    path = folder / "model.safetensors"
    changed = load_file(path) | changes
    save_file({k: v for k, v in changed.items() if v is not None}, path, {"format": "pt"})


def renamed(folder: Path, prefix: str) -> None:
    path = folder / "model.safetensors"
    save_file({prefix + k: v for k, v in load_file(path).items()}, path, {"format": "pt"})


HUGGING_FACE: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "10^6 layers": (lambda f: pretrained(f, num_hidden_layers=10**6), "num_hidden_layers"),
    "10^12 rows": (lambda f: pretrained(f, vocab_size=10**12), "vocab_size"),
    "10^9 heads": (lambda f: pretrained(f, num_attention_heads=10**9), "num_attention_heads"),
    "sizes inside text_config": (
        lambda f: pretrained(f, text_config={"vocab_size": 60, "n_layer": 10**6}),
        "n_layer",
    ),
    "a float for layers": (lambda f: pretrained(f, num_hidden_layers=2.5), "config.json"),
    "a list for layers": (lambda f: pretrained(f, num_hidden_layers=[2]), "config.json"),
    "text for layers": (lambda f: pretrained(f, num_hidden_layers="2"), "config.json"),
    "a key twice": (
        lambda f: text(f, "config.json", '{"vocab_size": 60, "vocab_size": 60}'),
        "the key 'vocab_size' is there twice",
    ),
    "a deep configuration": (lambda f: text(f, "config.json", DEEP), "config.json: not JSON"),
    "a list for a configuration": (lambda f: text(f, "config.json", "[]"), "expected keys"),
    "a number for a model type": (lambda f: pretrained(f, model_type=5), "config.json"),
    "a pipe for generation_config.json": (
        lambda f: in_place(f / "generation_config.json", os.mkfifo),
        "generation_config.json: cannot be read .it is a pipe",
    ),
    "a pipe for an adapter": (
        lambda f: os.mkfifo(f / "adapter_config.json"),
        "adapter_config.json: cannot be read .it is a pipe",
    ),
    "a pipe for weights": (lambda f: in_place(f / "model.safetensors", os.mkfifo), "a pipe"),
    "a pipe for the index": (lambda f: os.mkfifo(f / "model.safetensors.index.json"), "a pipe"),
    "an index out of the folder": (lambda f: index(f, {"a": ".."}), "table of file names"),
    "an index of the folder": (lambda f: index(f, {"a": ""}), "table of file names"),
    "an index with NUL": (lambda f: index(f, {"a": "b\0c"}), "table of file names"),
    "an index below": (lambda f: index(f, {"a": "x/model.safetensors"}), "table of file names"),
    "an index of numbers": (lambda f: index(f, {"a": 5}), "table of file names"),
    "an index with half a letter": (lambda f: index(f, {"a": "\ud800"}), "not valid Unicode"),
    "a deep index": (
        lambda f: text(f, "model.safetensors.index.json", DEEP),
        "index.json: not JSON",
    ),
    "65 dimensions": (
        lambda f: put_header(f / "model.safetensors", entry(shape=[32] + [1] * 64)),
        "has 65 dimensions",
    ),
    "no tensors": (lambda f: put_header(f / "model.safetensors", {}), "holds no tensors"),
    # what would be left out, made up, or computed otherwise
    "an adapter": (lambda f: text(f, "adapter_config.json", '{"peft_type": "LORA"}'), "an adapter"),
    "quantized": (
        lambda f: pretrained(f, quantization_config={"quant_method": "fp8"}),
        "a quantized model",
    ),
    "quantized in a way unheard of": (
        lambda f: pretrained(f, quantization_config={"quant_method": "unheard"}),
        "a quantized model",
    ),
    "a head of integers": (
        lambda f: tensors(f, {"lm_head.weight": torch.ones(60, 48, dtype=torch.int8)}),
        "lm_head.weight is I8",
    ),
    "a head of 8 bits": (
        lambda f: tensors(f, {"lm_head.weight": torch.ones(60, 48).to(torch.float8_e4m3fn)}),
        "lm_head.weight is F8_E4M3",
    ),
    "no head": (lambda f: tensors(f, {"lm_head.weight": None}), "has no lm_head.weight"),
    "no norm": (lambda f: tensors(f, {"model.norm.weight": None}), "has no model.norm.weight"),
    "a norm of queries": (
        lambda f: tensors(f, {"model.layers.0.self_attn.q_norm.weight": torch.ones(4)}),
        "does not know: model.layers.0.self_attn.q_norm.weight",
    ),
    "a flat tensor": (
        lambda f: tensors(f, {"model.layers.0.self_attn.k_proj.weight": torch.ones(48 * 48)}),
        "another shape for .*k_proj",
    ),
    "names of a compiled model": (lambda f: renamed(f, "_orig_mod."), "has no lm_head.weight"),
    "names of a wrapped model": (lambda f: renamed(f, "module."), "has no lm_head.weight"),
    "another head size": (lambda f: pretrained(f, head_dim=8), "another shape for"),
    "fewer rows": (lambda f: pretrained(f, vocab_size=59), "another shape for"),
    "fewer layers": (lambda f: pretrained(f, num_hidden_layers=1), "does not know: model.layers.1"),
    "no heads of keys": (lambda f: pretrained(f, num_key_value_heads=0), "cannot load"),
    "biases": (lambda f: pretrained(f, attention_bias=True), "has no .*k_proj.bias"),
    "biases of the MLP": (lambda f: pretrained(f, mlp_bias=True), "has no .*down_proj.bias"),
    "a head that is tied": (
        lambda f: pretrained(f, tie_word_embeddings=True),
        "output head differs",
    ),
    "a class with biases": (lambda f: pretrained(f, model_type="qwen2"), "has no .*k_proj.bias"),
    "a class with other norms": (lambda f: pretrained(f, model_type="olmo"), "does not know"),
    "a class that reads both ways": (lambda f: pretrained(f, model_type="bert"), "has no bert"),
    "an encoder and a decoder": (lambda f: pretrained(f, model_type="t5"), "cannot load"),
    "no class": (lambda f: pretrained(f, model_type=None), "cannot load"),
    "an unknown RoPE": (
        lambda f: pretrained(f, rope_parameters={"rope_type": "unheard", "rope_theta": 1e4}),
        "cannot load",
    ),
    "a list for RoPE": (lambda f: pretrained(f, rope_scaling=[1]), "cannot load"),
    "text for an epsilon": (lambda f: pretrained(f, rms_norm_eps="1e-6"), "cannot load"),
    "a list for an activation": (lambda f: pretrained(f, hidden_act=["silu"]), "cannot load"),
    "weights of another folder": (
        lambda f: pretrained(f, transformers_weights="../x.safetensors"),
        "cannot load",
    ),
    "an index of an earlier download": (
        lambda f: index(f, {"a": "model-1.safetensors"}),
        "model-1.safetensors: missing, though",
    ),
    "attention unheard of": (
        lambda f: pretrained(f, _attn_implementation="unheard"),
        "cannot load",
    ),
    "code of its own": (lambda f: pretrained(f, auto_map={"AutoModelForCausalLM": "x.Y"}), None),
    "a head for classes by its name": (
        lambda f: pretrained(f, architectures=["LlamaForSequenceClassification"]),
        None,
    ),
    "a path to elsewhere": (lambda f: pretrained(f, _name_or_path="/etc/passwd"), None),
    "a plan for many GPUs": (lambda f: pretrained(f, tp_plan="auto", device_map="cuda"), None),
    "a dtype unheard of": (lambda f: pretrained(f, dtype="unheard"), None),
    "half a generation_config.json": (lambda f: text(f, "generation_config.json", "{"), None),
}
"""None: it is read, and computes what it did before."""


@pytest.fixture(scope="module")
def folder_of_hf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf")
    save_model(folder, LlamaConfig(**SIZES))
    return folder


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_odd_hugging_face_folders(folder_of_hf: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(folder_of_hf, tmp_path / "hf"))
    damage, named = HUGGING_FACE[name]
    expected = logits(load_model(open_checkpoint(folder))) if named is None else None
    damage(folder)
    if named is None:
        assert torch.equal(logits(load_model(open_checkpoint(folder))), expected)
        return
    with pytest.raises(CheckpointError, match=named) as raised:
        load_model(open_checkpoint(folder))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", ["9" * 300, "", "../7", "7\0", "٧"])
def test_odd_names_of_the_latest_step(sound: Path, content: str) -> None:
    latest = sound.parent / "latest.txt"
    latest.write_text(content)
    with pytest.raises(CheckpointError, match=r"latest\.txt: .* is not a step"):
        open_checkpoint(sound.parent)
    latest.unlink()
    os.mkfifo(latest)
    with pytest.raises(CheckpointError, match=r"latest\.txt: cannot be read .it is a pipe"):
        open_checkpoint(sound.parent)
    latest.unlink()


def test_what_cannot_be_read_is_called_so(
    sound: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for a user who lacks the right to, which root in a test never does."""

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("evaluation.files.check_regular", refuse)
    assert main(["inspect", str(sound)]) == 1
    assert "config.yaml: cannot be read (Permission denied)" in capsys.readouterr().err

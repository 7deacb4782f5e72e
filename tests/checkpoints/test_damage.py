"""Damaged Nanotron checkpoints: one sentence that names the file within seconds, never wrong values."""

import errno
import json
import os
import pickle
import shutil
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from evaluation.__main__ import main
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from tests.checkpoints.nanotron import (
    TRAINING,
    age,
    llama,
    make_checkpoint,
    moe,
    qwen2,
    rewrite,
    shard_paths,
)

NORM = "model.final_layer_norm.pp_block.weight"
QKV = "model.decoder.1.pp_block.attn.qkv_proj.weight"
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "7"
    make_checkpoint(folder, llama(), tp=2)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "7"))


def norm(folder: Path) -> Path:
    return shard_paths(folder, NORM)[0]


def qkv(folder: Path, rank: int = 0) -> Path:
    return shard_paths(folder, QKV)[rank]


def put_header(path: Path, content: Any, length: int | None = None) -> None:
    """Replaces a file's header, leaving its data; a string is written as it is."""
    whole = path.read_bytes()
    old = struct.unpack("<Q", whole[:8])[0]
    header = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(struct.pack("<Q", length or len(header)) + header + whole[8 + old :])


def entry(**changes: Any) -> dict[str, Any]:
    return {"data": {"dtype": "F32", "shape": [32], "data_offsets": [0, 128]} | changes}


def metadata(folder: Path, **changes: str) -> None:
    whole = qkv(folder).read_bytes()
    header = json.loads(whole[8 : 8 + struct.unpack("<Q", whole[:8])[0]])
    header["__metadata__"] |= changes
    put_header(qkv(folder), header)


def replace(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(old, new))


def config(folder: Path, **changes: Any) -> None:
    path = folder / "model_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def model(folder: Path, content: Any) -> None:
    (folder / "model_config.json").write_text(json.dumps(content))


def training(folder: Path, without: str = "", **changes: Any) -> None:
    kept = {key: value for key, value in (TRAINING | changes).items() if key != without}
    (folder / "config.yaml").write_text(yaml.safe_dump(kept))


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


def foreign_parameter(folder: Path) -> None:
    path = folder / "model/model/decoder/1/pp_block/attn/q_norm"
    path.mkdir()
    save_file({"data": torch.ones(8)}, path / "model_weight.safetensors")


def layer_copy(folder: Path) -> None:
    layers = folder / "model/model/decoder"
    shutil.copytree(layers / "1", layers / "2")


def renamed(path: Path, old: str, new: str) -> Path:
    return path.with_name(path.name.replace(old, new))


Cases = dict[str, tuple[Callable[[Path], object], str]]

INCOMPLETE: Cases = {
    "no second shard": (lambda f: qkv(f, 1).unlink(), "tp-rank-1-of-2.safetensors: this shard"),
    "no parameter": (lambda f: shutil.rmtree(qkv(f).parent), "qkv_proj"),
    "no norm": (lambda f: norm(f).unlink(), NORM),
    "no weights": (lambda f: shutil.rmtree(f / "model"), "model: no such folder"),
    "an empty folder": (lambda f: (shutil.rmtree(f / "model"), (f / "model").mkdir()), "no safetensors files"),
    "no model_config.json": (lambda f: (f / "model_config.json").unlink(), "model_config.json: missing"),
    "a temporary file": (lambda f: qkv(f).with_name(f"{qkv(f).name}.Ab3dE").touch(), "Ab3dE: an unfinished file"),
    "an empty file": (lambda f: norm(f).write_bytes(b""), "model_weight.safetensors: ends early"),
    "a cut number": (lambda f: text(f, "config.yaml", yaml.safe_dump(TRAINING)[:-3]), "config.yaml.*does not end"),
    "cut before tokens": (lambda f: training(f, without="tokens"), "config.yaml: `tokens` is missing"),
    "cut before tokenizer": (lambda f: training(f, without="tokenizer"), "`tokenizer` is missing"),
    "no init_method": (lambda f: training(f, model={"dtype": "float32"}), "`model.init_method`"),
    "no tokenizer name": (lambda f: training(f, tokenizer={"x": 1}), "tokenizer_name_or_path"),
    "9,999 layers": (lambda f: config(f, num_hidden_layers=9_999), "9999 layers"),
    "9,999 layers of experts": (
        lambda f: model(f, qwen2(num_hidden_layers=9_999, moe_config=moe(layers=[-1]))),
        "9999 layers",
    ),
    "a third layer": (lambda f: config(f, num_hidden_layers=3), "decoder/2"),
    "a header of 99 MB": (lambda f: put_header(norm(f), entry(), 99_000_000), "ends early"),
}  # fmt: skip

UNSOUND: Cases = {
    # weight files
    "a shard twice": (lambda f: shutil.copy(qkv(f), qkv(f, 1)), "qkv_proj.* not covered exactly once"),
    "a shard of another pipeline": (
        lambda f: shutil.copy(qkv(f), renamed(qkv(f), "pp-rank-0-of-1", "pp-rank-1-of-2")),
        "qkv_proj.* not covered exactly once",
    ),
    "another tensor-parallel size": (
        lambda f: qkv(f).rename(renamed(qkv(f), "tp-rank-0-of-2", "tp-rank-0-of-1")),
        "tp-rank.* of another tensor-parallel size",
    ),
    "a foreign parameter": (foreign_parameter, "q_norm"),
    "a layer too many": (layer_copy, "decoder/2"),
    "a foreign file": (
        lambda f: save_file({"data": torch.ones(8)}, f / "model/adapter.safetensors"),
        "adapter.safetensors: not a Nanotron weight file",
    ),
    "a Hugging Face file": (lambda f: save_file({"weight": torch.ones(32)}, norm(f)), "weight.* where a Nanotron"),
    "no safetensors": (lambda f: norm(f).write_bytes(b"PK\x03\x04" + bytes(range(256)) * 8), "model_weight.safetensors"),
    "another shape": (lambda f: rewrite(norm(f), torch.ones(31)), r"model_weight.safetensors: shape \(31,\)"),
    "another whole shape": (lambda f: rewrite(qkv(f, 1), unsharded_shape="(128, 32)"), "tp-rank-1-of-2.safetensors"),
    "another local shape": (lambda f: rewrite(qkv(f), load_file(qkv(f))["data"][:-1]), "tp-rank-0-of-2.safetensors"),
    "two dtypes": (lambda f: rewrite(qkv(f, 1), load_file(qkv(f, 1))["data"].bfloat16()), "tp-rank-1-of-2.safetensors: BF16"),
    "integers": (lambda f: rewrite(norm(f), torch.ones(32, dtype=torch.int64)), "model_weight.safetensors: dtype I64"),
    "no slices": (lambda f: save_file({"data": load_file(qkv(f))["data"]}, qkv(f)), "a shard without `local_global"),
    "a head though tied": (lambda f: config(f, tie_word_embeddings=True), "lm_head.*: an output head, though"),
    "an unknown dtype": (lambda f: replace(norm(f), b'"F32"', b'"F31"'), "model_weight.safetensors: .*F31"),
    "a byte too many": (lambda f: norm(f).write_bytes(norm(f).read_bytes() + b"x"), "1 bytes behind its last"),
    "other rows": (lambda f: config(f, vocab_size=64), "token_embedding"),
    # config.yaml
    "no config.yaml": (lambda f: (f / "config.yaml").unlink(), "config.yaml is missing.*muP"),
    "no length": (lambda f: training(f, tokens={"train_steps": 1}), "`tokens.sequence_length`"),
    "empty config.yaml": (lambda f: text(f, "config.yaml", ""), "config.yaml: .*expected keys"),
    "broken YAML": (lambda f: text(f, "config.yaml", "a: [1,\nb: }"), "config.yaml: not YAML"),
    "YAML of Python": (lambda f: text(f, "config.yaml", "a: !!python/object/apply:os.system ['true']"), "config.yaml"),
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
    "broken JSON": (lambda f: text(f, "model_config.json", '{"hidden_size": 32,'), "model_config.json: not JSON"),
    "a list for JSON": (lambda f: text(f, "model_config.json", "[1]"), "model_config.json: expected keys"),
    "binary JSON": (lambda f: (f / "model_config.json").write_bytes(b"\xff\xfe\x00"), "model_config.json: not UTF-8"),
    "deep JSON": (lambda f: text(f, "model_config.json", DEEP), "model_config.json: not JSON"),
    "deep tables": (lambda f: text(f, "model_config.json", '{"a":' * 100_000), "model_config.json: not JSON"),
    "a JSON key twice": (
        lambda f: text(f, "model_config.json", '{"vocab_size": 60, "vocab_size": 61}'),
        "the key 'vocab_size' is there twice",
    ),
    "half a letter": (lambda f: config(f, hidden_act="\ud800"), "model_config.json: .*not valid Unicode"),
    "endless digits": (
        lambda f: text(f, "model_config.json", '{"vocab_size": ' + "9" * 5000 + "}"),
        "model_config.json: not JSON",
    ),
    "10^6 layers": (lambda f: config(f, num_hidden_layers=10**6), "num_hidden_layers` is 1000000"),
    "10^30 layers": (lambda f: config(f, num_hidden_layers=10**30), "num_hidden_layers"),
    "a float for heads": (lambda f: config(f, num_attention_heads=4.0), "is 4.0"),
    "text for layers": (lambda f: config(f, num_hidden_layers="2"), "is '2'"),
    "a table for layers": (lambda f: config(f, num_hidden_layers={"a": 1}), r"keys and values \(1\)"),
    "true for a size": (lambda f: config(f, hidden_size=True), "is True"),
    "a negative size": (lambda f: config(f, intermediate_size=-24), "is -24"),
    "null for a size": (lambda f: config(f, hidden_size=None), "hidden_size` is None"),
    "no heads": (lambda f: config(f, num_attention_heads=0), "num_attention_heads` is 0"),
    "2^63 rows": (lambda f: config(f, vocab_size=2**63), "vocab_size"),
    "no rows": (lambda f: config(f, vocab_size=None), "vocab_size"),
    "five heads": (lambda f: config(f, num_attention_heads=5), "hidden_size"),
    "three heads of keys": (lambda f: config(f, num_key_value_heads=3), "num_key_value_heads"),
    "null for interleaving": (lambda f: config(f, rope_interleaved=None), "rope_interleaved"),
    "text for theta": (lambda f: config(f, rope_theta="high"), "rope_theta"),
    "null for theta": (lambda f: config(f, rope_theta=None), "rope_theta"),
    "NaN for an epsilon": (lambda f: config(f, rms_norm_eps=float("nan")), "rms_norm_eps"),
    "text for a flag": (lambda f: config(f, tie_word_embeddings="yes"), "tie_word_embeddings"),
    "a number for experts": (lambda f: model(f, qwen2(moe_config=3)), "moe_config"),
    "experts of a sixth layer": (lambda f: model(f, qwen2(moe_config=moe(layers=[5]))), "moe_config.layers"),
    "more experts than there are": (lambda f: model(f, qwen2(moe_config=moe(top_k=9))), "moe_config.top_k"),
    "null for experts": (lambda f: model(f, qwen2(moe_config=moe(num_experts=None))), "moe_config.num_experts"),
    "a sparse configuration": (lambda f: sparse(f / "model_config.json", 1 << 40), "larger than any configuration"),
    # folders, pipes, sockets, devices, links
    "a folder for a configuration": (
        lambda f: in_place(f / "model_config.json", Path.mkdir),
        "model_config.json: cannot be read .it is a folder",
    ),
    "a pipe for weights": (lambda f: in_place(norm(f), os.mkfifo), "it is a pipe"),
    "a pipe for config.yaml": (lambda f: in_place(f / "config.yaml", os.mkfifo), "it is a pipe"),
    "a pipe for model_config.json": (lambda f: in_place(f / "model_config.json", os.mkfifo), "it is a pipe"),
    "a pipe for config.json": (lambda f: os.mkfifo(f / "config.json"), "it is a pipe"),
    "a socket for weights": (lambda f: in_place(norm(f), listen), "it is a socket"),
    "a device for weights": (lambda f: in_place(norm(f), lambda p: link(p, Path("/dev/zero"))), "it is a device"),
    "a link to nowhere": (
        lambda f: in_place(f / "model_config.json", lambda p: link(p, f / "absent")),
        "model_config.json: cannot be read .No such file",
    ),
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
    "a link to itself": (lambda f: in_place(norm(f), lambda p: link(p, p)), "Too many levels of symbolic links"),
    # headers
    "a header of 2^63 bytes": (lambda f: put_header(norm(f), entry(), 2**63), "bytes long"),
    "a sparse file": (lambda f: sparse(norm(f), 1 << 40), "its header is not JSON|no tensors"),
    "a sparse file of a sound header": (
        lambda f: [
            put_header(norm(f), entry(shape=[2**38], data_offsets=[0, 2**40])),
            os.truncate(norm(f), 8 + len(json.dumps(entry(shape=[2**38], data_offsets=[0, 2**40]))) + 2**40),
        ],
        "shape .274877906944,., but the configuration",
    ),
    "65 dimensions": (lambda f: put_header(norm(f), entry(shape=[32] + [1] * 64)), "has 65 dimensions"),
    "10^5 dimensions": (lambda f: put_header(norm(f), entry(shape=[32] + [1] * 10**5)), "has 100001 dimensions"),
    "a dimension of 2^63": (lambda f: put_header(norm(f), entry(shape=[2**63])), "has shape"),
    "a negative dimension": (lambda f: put_header(norm(f), entry(shape=[-32])), "has shape"),
    "a float dimension": (lambda f: put_header(norm(f), entry(shape=[32.0])), "has shape"),
    "a true dimension": (lambda f: put_header(norm(f), entry(shape=[True])), "has shape"),
    "text for offsets": (lambda f: put_header(norm(f), entry(data_offsets="ab")), "data_offsets"),
    "offsets beyond 2^63": (lambda f: put_header(norm(f), entry(data_offsets=[2**64, 2**64 + 128])), "data_offsets"),
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
    "a shape of endless digits": (lambda f: metadata(f, unsharded_shape="(" + "9" * 5000 + ",)"), "is not a shape"),
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

UNSUPPORTED: Cases = {
    "Starcoder2": (lambda f: model(f, {"is_starcoder2_config": True, "vocab_size": 60}), "Starcoder2"),
    "Mamba": (lambda f: model(f, {"is_mamba_config": True, "vocab_size": 60}), "is_mamba_config"),
    "no marker": (lambda f: model(f, {"vocab_size": 60}), "is_…_config"),
    "experts without RoPE": (lambda f: model(f, qwen2(moe_config=moe(), no_rope_layer=2)), "no_rope_layer"),
    "experts in a window": (lambda f: model(f, qwen2(moe_config=moe(), sliding_window_size=4)), "sliding_window_size"),
}  # fmt: skip

KINDS = {IncompleteCheckpoint: INCOMPLETE, CheckpointError: UNSOUND, UnsupportedCheckpoint: UNSUPPORTED}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, of in KINDS.items() for name in of]
)
def test_damage_is_one_sentence(
    folder: Path, kind: type[CheckpointError], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, named = KINDS[kind][name]
    damage(folder)
    with pytest.raises(kind, match=named) as raised:
        check_complete(open_checkpoint(folder))
    assert len(str(raised.value)) < 700
    assert main(["inspect", str(folder)]) == 1
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    # How deep Python was when it gave up depends on who called.
    assert line.partition("exceeded")[0] == f"error: {raised.value}".partition("exceeded")[0]


def test_an_unknown_activation(folder: Path) -> None:
    config(folder, hidden_act="unheard")
    with pytest.raises(UnsupportedCheckpoint, match="unheard"):
        load_model(open_checkpoint(folder))


def in_copy(sound: Path, copy: Path, shard: Path) -> Path:
    """A shard's path in a copy of the checkpoint, which is made once for all examples."""
    if not copy.exists():
        shutil.copytree(sound, copy)
    return copy / shard.relative_to(sound)


RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(RELAXED, max_examples=60)
@given(part=st.floats(0, 1, exclude_max=True), sharded=st.booleans())
def test_truncated_anywhere(sound: Path, tmp_path: Path, part: float, sharded: bool) -> None:
    path = qkv(sound) if sharded else norm(sound)
    copy, whole = in_copy(sound, tmp_path / "7", path), path.read_bytes()
    copy.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(IncompleteCheckpoint, match=copy.name):
        check_complete(open_checkpoint(tmp_path / "7"))
    copy.write_bytes(whole)


@settings(RELAXED, max_examples=150)
@given(data=st.data())
def test_a_flipped_header_is_refused_or_harmless(
    sound: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """Any byte of the header may change: either one sentence, or every weight as it was."""
    path = qkv(sound)
    copy, whole = in_copy(sound, tmp_path / "7", path), bytearray(path.read_bytes())
    length = int.from_bytes(whole[:8], "little")
    whole[data.draw(st.integers(0, 8 + length - 1))] = data.draw(st.integers(0, 255))
    copy.write_bytes(whole)
    age(copy.parent)
    loaded, problem = None, ""
    try:
        loaded = load_model(open_checkpoint(tmp_path / "7")).state_dict()
    except CheckpointError as error:
        problem = str(error)
    copy.write_bytes(path.read_bytes())
    if loaded is None:
        assert "qkv_proj" in problem
        return
    expected = load_model(open_checkpoint(sound)).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in loaded.items())


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.mkdir(), "not a checkpoint"),
        (lambda path: path.write_text("x"), "a file"),
        (lambda path: (path / "500").mkdir(parents=True), "500"),
    ],
)
def test_no_checkpoint_at_all(tmp_path: Path, make: Callable[[Path], object], named: str) -> None:
    make(tmp_path / "ckpts")
    with pytest.raises(CheckpointError, match=named):
        open_checkpoint(tmp_path / "ckpts")


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_pickles_are_never_opened(folder: Path, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    for name in ("random/a.pt", "optimizer/b.pt", "lr_scheduler.pt", "model/model/c.pt"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(Trap(sprung)))
        path.chmod(0)
    load_model(open_checkpoint(folder))
    assert not sprung.exists()


def test_a_writer_at_work_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content = norm(folder), norm(folder).read_bytes()
    path.write_bytes(content)
    checkpoint = open_checkpoint(folder)
    check_complete(checkpoint)  # fresh, but nothing changes
    monkeypatch.setattr("time.sleep", lambda _: path.write_bytes(content[:-1]))
    with pytest.raises(IncompleteCheckpoint, match="being written"):
        check_complete(checkpoint)


def test_latest_txt_vouches_for_a_fresh_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "latest.txt").write_text("7")
    norm(folder).write_bytes(norm(folder).read_bytes())
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("looked twice"))
    check_complete(open_checkpoint(folder.parent))


def test_replaced_between_opening_and_loading(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    rewrite(norm(folder), torch.zeros(32))
    with pytest.raises(IncompleteCheckpoint, match="changed since it was opened"):
        load_model(checkpoint)


@pytest.mark.parametrize("content", ["9" * 300, "", "../7", "7\0", "٧"])
def test_odd_names_of_the_latest_step(folder: Path, content: str) -> None:
    latest = folder.parent / "latest.txt"
    latest.write_text(content)
    with pytest.raises(CheckpointError, match=r"latest\.txt: .* is not a step"):
        open_checkpoint(folder.parent)
    in_place(latest, os.mkfifo)
    with pytest.raises(CheckpointError, match=r"latest\.txt: cannot be read .it is a pipe"):
        open_checkpoint(folder.parent)


def test_what_cannot_be_read_is_called_so(
    sound: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for a user who lacks the right to, which root in a test never does."""

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("evaluation.files.check_regular", refuse)
    assert main(["inspect", str(sound)]) == 1
    assert "config.yaml: cannot be read (Permission denied)" in capsys.readouterr().err

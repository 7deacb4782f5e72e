"""Damaged Nanotron checkpoints as tables: what is done to the folder, and what the sentence must name."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
import yaml
from safetensors.torch import load_file, save_file

from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from tests.checkpoints.damage import (
    DEEP,
    config,
    entry,
    foreign_parameter,
    in_place,
    layer_copy,
    link,
    metadata,
    model,
    norm,
    put_header,
    qkv,
    renamed,
    replace,
    sparse,
    text,
    training,
)
from tests.checkpoints.nanotron import TRAINING, moe, qwen2, rewrite

Cases = dict[str, tuple[Callable[[Path], object], str]]

INCOMPLETE: Cases = {
    "no second shard": (lambda f: qkv(f, 1).unlink(), "tp-rank-1-of-2.safetensors: this shard"),
    "no parameter": (lambda f: shutil.rmtree(qkv(f).parent), "qkv_proj"),
    "no weights": (lambda f: shutil.rmtree(f / "model"), "model: no such folder"),
    "an empty folder": (lambda f: (shutil.rmtree(f / "model"), (f / "model").mkdir()), "no safetensors files"),
    "no model_config.json": (lambda f: (f / "model_config.json").unlink(), "model_config.json: missing"),
    "a temporary file": (lambda f: qkv(f).with_name(f"{qkv(f).name}.Ab3dE").touch(), "Ab3dE: an unfinished file"),
    "a cut number": (lambda f: text(f, "config.yaml", yaml.safe_dump(TRAINING)[:-3]), "config.yaml.*does not end"),
    "cut before tokens": (lambda f: training(f, without="tokens"), "config.yaml: `tokens` is missing"),
    "cut before tokenizer": (lambda f: training(f, without="tokenizer"), "`tokenizer` is missing"),
    "no init_method": (lambda f: training(f, model={"dtype": "float32"}), "`model.init_method`"),
    "no tokenizer name": (lambda f: training(f, tokenizer={"x": 1}), "tokenizer_name_or_path"),
    "9,999 layers": (lambda f: config(f, num_hidden_layers=9_999), "9999 layers"),
    "9,999 layers of experts": (lambda f: model(f, qwen2(num_hidden_layers=9_999, moe_config=moe(layers=[-1]))), "9999 layers"),
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
    # config.yaml
    "no config.yaml": (lambda f: (f / "config.yaml").unlink(), "config.yaml is missing.*muP"),
    "no length": (lambda f: training(f, tokens={"train_steps": 1}), "`tokens.sequence_length`"),
    "empty config.yaml": (lambda f: text(f, "config.yaml", ""), "config.yaml: .*expected keys"),
    "broken YAML": (lambda f: text(f, "config.yaml", "a: [1,\nb: }"), "config.yaml: not YAML"),
    "YAML of Python": (lambda f: text(f, "config.yaml", "a: !!python/object/apply:os.system ['true']"), "config.yaml"),
    "muP as text": (lambda f: training(f, model={"init_method": {"use_mup": "true"}}), "use_mup` is 'true'; expected true or false"),
    "length as float": (lambda f: training(f, tokens={"sequence_length": 2048.0}), "is 2048.0"),
    "length of 2^63": (lambda f: training(f, tokens={"sequence_length": 2**63}), "up to"),
    "a number for a tokenizer": (lambda f: training(f, tokenizer={"tokenizer_name_or_path": 7}), "tokenizer_name_or_path` is 7"),
    "step as text": (lambda f: training(f, general={"step": "5"}), "general.step"),
    "a YAML key twice": (lambda f: text(f, "config.yaml", yaml.safe_dump(TRAINING) + "tokens: {}\n"), "the key 'tokens' stands in line"),
    "deep YAML": (lambda f: text(f, "config.yaml", DEEP), "config.yaml: not YAML"),
    "half a letter in YAML": (
        lambda f: text(f, "config.yaml", yaml.safe_dump(TRAINING) + 'x: "\\ud800"\n'),
        "config.yaml: .*invalid Unicode",
    ),
    "YAML of another type": (lambda f: text(f, "config.yaml", 'a: !!timestamp "x"\nb: !!int ""\n'), "config.yaml: not YAML"),
    # model_config.json
    "broken JSON": (lambda f: text(f, "model_config.json", '{"hidden_size": 32,'), "model_config.json: not JSON"),
    "a list for JSON": (lambda f: text(f, "model_config.json", "[1]"), "model_config.json: expected keys"),
    "binary JSON": (lambda f: (f / "model_config.json").write_bytes(b"\xff\xfe\x00"), "model_config.json: not UTF-8"),
    "deep JSON": (lambda f: text(f, "model_config.json", DEEP), "model_config.json: not JSON"),
    "a JSON key twice": (
        lambda f: text(f, "model_config.json", '{"vocab_size": 60, "vocab_size": 61}'),
        "the key 'vocab_size' is there twice",
    ),
    "half a letter": (lambda f: config(f, hidden_act="\ud800"), "model_config.json: .*not valid Unicode"),
    "endless digits": (lambda f: text(f, "model_config.json", '{"vocab_size": ' + "9" * 5000 + "}"), "model_config.json: not JSON"),
    "10^6 layers": (lambda f: config(f, num_hidden_layers=10**6), "num_hidden_layers` is 1000000"),
    "a float for heads": (lambda f: config(f, num_attention_heads=4.0), "is 4.0"),
    "a table for layers": (lambda f: config(f, num_hidden_layers={"a": 1}), r"keys and values \(1\)"),
    "true for a size": (lambda f: config(f, hidden_size=True), "is True"),
    "a negative size": (lambda f: config(f, intermediate_size=-24), "is -24"),
    "null for a size": (lambda f: config(f, hidden_size=None), "hidden_size` is None"),
    "no rows": (lambda f: config(f, vocab_size=None), "vocab_size"),
    "five heads": (lambda f: config(f, num_attention_heads=5), "hidden_size"),
    "three heads of keys": (lambda f: config(f, num_key_value_heads=3), "num_key_value_heads"),
    "null for interleaving": (lambda f: config(f, rope_interleaved=None), "rope_interleaved"),
    "text for theta": (lambda f: config(f, rope_theta="high"), "rope_theta"),
    "NaN for an epsilon": (lambda f: config(f, rms_norm_eps=float("nan")), "rms_norm_eps"),
    "text for a flag": (lambda f: config(f, tie_word_embeddings="yes"), "tie_word_embeddings"),
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
    "a pipe for config.json": (lambda f: os.mkfifo(f / "config.json"), "it is a pipe"),
    "a device for weights": (lambda f: in_place(norm(f), lambda p: link(p, Path("/dev/zero"))), "it is a device"),
    "a link to nowhere": (
        lambda f: in_place(f / "model_config.json", lambda p: link(p, f / "absent")),
        "model_config.json: cannot be read .No such file",
    ),
    "a link to a parent": (
        lambda f: link(f / "model/model/loop", f / "model"),
        "loop: a link to the folder .*/model, which is not followed",
    ),
    "a link to everything": (lambda f: link(f / "model/model/all", Path("/")), "all: a link to the folder /, which is not followed"),
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
    "a dimension of 2^63": (lambda f: put_header(norm(f), entry(shape=[2**63])), "has shape"),
    "a true dimension": (lambda f: put_header(norm(f), entry(shape=[True])), "has shape"),
    "text for offsets": (lambda f: put_header(norm(f), entry(data_offsets="ab")), "data_offsets"),
    "offsets beyond 2^63": (lambda f: put_header(norm(f), entry(data_offsets=[2**64, 2**64 + 128])), "data_offsets"),
    "a header key twice": (lambda f: put_header(norm(f), json.dumps(entry())[:-1] + ', "data": 1}'), "the key 'data' is there twice"),
    "a deep header": (lambda f: put_header(norm(f), DEEP), "its header is not JSON"),
    "an empty header": (lambda f: put_header(norm(f), {}), "holds no tensors"),
    "half a letter in a header": (lambda f: put_header(norm(f), {"\ud800": entry()["data"]}), "where a Nanotron weight file holds one"),
    "metadata of numbers": (lambda f: put_header(norm(f), {"__metadata__": {"a": 1}, **entry()}), "not a table of strings"),
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

"""Damaged checkpoints: one sentence naming the file, never a traceback or wrong values."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from evaluation.checkpoints.agreement import check_tokenizer_fits
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.format import Checkpoint, open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError, IncompleteCheckpoint, UnsupportedCheckpoint
from tests.checkpoints.nanotron import age, llama, make_checkpoint, moe, qwen2, rewrite, shard_paths

QKV = "model.decoder.1.pp_block.attn.qkv_proj.weight"
NORM = "model.final_layer_norm.pp_block.weight"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "7"
    make_checkpoint(folder, llama(), tp=2)
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "7"))


def check(folder: Path) -> Checkpoint:
    checkpoint = open_checkpoint(folder)
    check_complete(checkpoint)
    return checkpoint


def remove_shard(folder: Path) -> str:
    path = shard_paths(folder, QKV)[1]
    path.unlink()
    return path.name


def remove_parameter(folder: Path) -> str:
    shutil.rmtree(shard_paths(folder, QKV)[0].parent)
    return "qkv_proj"


def remove_norm(folder: Path) -> str:
    shard_paths(folder, NORM)[0].unlink()
    return NORM


def remove_weights(folder: Path) -> str:
    shutil.rmtree(folder / "model")
    return "model"


def empty_weights(folder: Path) -> str:
    shutil.rmtree(folder / "model")
    (folder / "model").mkdir()
    return "model"


def remove_config(folder: Path) -> str:
    (folder / "model_config.json").unlink()
    return "model_config.json"


def leave_temporary(folder: Path) -> str:
    path = shard_paths(folder, QKV)[0]
    path.with_name(f"{path.name}.Ab3dE").write_bytes(b"")
    return f"{path.name}.Ab3dE"


def empty_file(folder: Path) -> str:
    path = shard_paths(folder, NORM)[0]
    path.write_bytes(b"")
    return path.name


INCOMPLETE = [
    remove_shard,
    remove_parameter,
    remove_norm,
    remove_weights,
    empty_weights,
    remove_config,
    leave_temporary,
    empty_file,
]


def duplicate_coverage(folder: Path) -> str:
    first, second = shard_paths(folder, QKV)
    shutil.copy(first, second)
    return "qkv_proj"


def second_copy(folder: Path) -> str:
    first = shard_paths(folder, QKV)[0]
    shutil.copy(first, first.with_name(first.name.replace("pp-rank-0-of-1", "pp-rank-1-of-2")))
    return "qkv_proj"


def other_tp(folder: Path) -> str:
    path = shard_paths(folder, QKV)[0]
    name = path.name.replace("tp-rank-0-of-2", "tp-rank-0-of-1")
    path.rename(path.with_name(name))
    return "tp-rank"


def foreign_parameter(folder: Path) -> str:
    path = folder / "model" / "model" / "decoder" / "1" / "pp_block" / "attn" / "q_norm"
    path.mkdir()
    save_file({"data": torch.ones(8)}, path / "model_weight.safetensors")
    return "q_norm"


def extra_layer(folder: Path) -> str:
    layers = folder / "model" / "model" / "decoder"
    shutil.copytree(layers / "1", layers / "2")
    return "decoder/2"


def foreign_file(folder: Path) -> str:
    save_file({"data": torch.ones(8)}, folder / "model" / "adapter.safetensors")
    return "adapter.safetensors"


def hugging_face_file(folder: Path) -> str:
    path = shard_paths(folder, NORM)[0]
    save_file({"weight": torch.ones(32)}, path)
    return path.name


def not_safetensors(folder: Path) -> str:
    path = shard_paths(folder, NORM)[0]
    path.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 8)
    return path.name


def wrong_shape(folder: Path) -> str:
    path = shard_paths(folder, NORM)[0]
    rewrite(path, torch.ones(31))
    return path.name


def wrong_whole_shape(folder: Path) -> str:
    path = shard_paths(folder, QKV)[1]
    rewrite(path, unsharded_shape="(128, 32)")
    return path.name


def wrong_local_shape(folder: Path) -> str:
    path = shard_paths(folder, QKV)[0]
    rewrite(path, load_file(path)["data"][:-1])
    return path.name


def mixed_dtypes(folder: Path) -> str:
    path = shard_paths(folder, QKV)[1]
    rewrite(path, load_file(path)["data"].bfloat16())
    return path.name


def integers(folder: Path) -> str:
    path = shard_paths(folder, NORM)[0]
    rewrite(path, torch.ones(32, dtype=torch.int64))
    return path.name


def no_slices(folder: Path) -> str:
    path = shard_paths(folder, QKV)[0]
    save_file({"data": load_file(path)["data"]}, path)
    return path.name


def head_though_tied(folder: Path) -> str:
    (folder / "model_config.json").write_text(json.dumps(llama(tie_word_embeddings=True)))
    return "lm_head"


def unknown_dtype(folder: Path) -> str:
    path = shard_paths(folder, NORM)[0]
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"F31"'))
    return path.name


def trailing_bytes(folder: Path) -> str:
    path = shard_paths(folder, NORM)[0]
    path.write_bytes(path.read_bytes() + b"x")
    return path.name


def broken_json(folder: Path) -> str:
    (folder / "model_config.json").write_text('{"hidden_size": 32,')
    return "model_config.json"


def list_for_json(folder: Path) -> str:
    (folder / "model_config.json").write_text("[1]")
    return "model_config.json"


def binary_json(folder: Path) -> str:
    (folder / "model_config.json").write_bytes(b"\xff\xfe\x00")
    return "model_config.json"


def broken_yaml(folder: Path) -> str:
    (folder / "config.yaml").write_text("a: [1,\nb: }")
    return "config.yaml"


def python_yaml(folder: Path) -> str:
    (folder / "config.yaml").write_text("a: !!python/object/apply:os.system ['true']")
    return "config.yaml"


UNSOUND = [
    duplicate_coverage,
    second_copy,
    other_tp,
    foreign_parameter,
    extra_layer,
    foreign_file,
    hugging_face_file,
    not_safetensors,
    wrong_shape,
    wrong_whole_shape,
    wrong_local_shape,
    mixed_dtypes,
    integers,
    no_slices,
    head_though_tied,
    unknown_dtype,
    trailing_bytes,
    broken_json,
    list_for_json,
    binary_json,
    broken_yaml,
    python_yaml,
]


@pytest.mark.parametrize("damage", INCOMPLETE, ids=lambda damage: damage.__name__)
def test_incomplete(folder: Path, damage: Callable[[Path], str]) -> None:
    named = damage(folder)
    age(folder)
    with pytest.raises(IncompleteCheckpoint) as error:
        check(folder)
    assert named in str(error.value)


@pytest.mark.parametrize("damage", UNSOUND, ids=lambda damage: damage.__name__)
def test_unsound(folder: Path, damage: Callable[[Path], str]) -> None:
    named = damage(folder)
    age(folder)
    with pytest.raises(CheckpointError) as error:
        check(folder)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("key", ["hidden_size", "num_attention_heads", "vocab_size"])
@pytest.mark.parametrize("value", [None, 0, -4, "many", 2.5, True])
def test_impossible_numbers_name_the_key(folder: Path, key: str, value: object) -> None:
    (folder / "model_config.json").write_text(json.dumps(llama(**{key: value})))
    with pytest.raises(CheckpointError, match=key):
        check(folder)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_attention_heads": 5}, "hidden_size"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"rope_interleaved": None}, "rope_interleaved"),
        ({"rope_theta": "high"}, "rope_theta"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"hidden_act": "unheard"}, "unheard"),
        ({"vocab_size": 64}, "token_embedding"),
        ({"num_hidden_layers": 3}, "decoder"),
        ({"num_hidden_layers": 10**30}, "num_hidden_layers"),
    ],
)
def test_configurations_that_do_not_fit(
    folder: Path, changes: dict[str, object], named: str
) -> None:
    (folder / "model_config.json").write_text(json.dumps(llama(**changes)))
    with pytest.raises(CheckpointError, match=named):
        load_model(check(folder))


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"is_starcoder2_config": True, "vocab_size": 60}, "Starcoder2"),
        ({"is_mamba_config": True, "vocab_size": 60}, "is_mamba_config"),
        ({"vocab_size": 60}, "is_…_config"),
        (qwen2(moe_config=moe(), no_rope_layer=2), "no_rope_layer"),
        (qwen2(moe_config=moe(), sliding_window_size=4), "sliding_window_size"),
    ],
)
def test_unsupported_by_name(folder: Path, config: dict[str, object], named: str) -> None:
    (folder / "model_config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedCheckpoint, match=named):
        check(folder)


@pytest.mark.parametrize("moe_config", [3, moe(layers=[5]), moe(top_k=9), moe(num_experts=None)])
def test_impossible_experts(folder: Path, moe_config: object) -> None:
    (folder / "model_config.json").write_text(json.dumps(qwen2(moe_config=moe_config)))
    with pytest.raises(CheckpointError, match="moe_config"):
        check(folder)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(part=st.floats(0, 1, exclude_max=True), sharded=st.booleans())
def test_truncated_anywhere(sound: Path, tmp_path: Path, part: float, sharded: bool) -> None:
    path = shard_paths(sound, QKV if sharded else NORM)[0]
    whole = path.read_bytes()
    copy = tmp_path / "7" / path.relative_to(sound)
    if not copy.parent.exists():
        shutil.copytree(sound, tmp_path / "7", dirs_exist_ok=True)
    copy.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(IncompleteCheckpoint) as error:
        check(tmp_path / "7")
    copy.write_bytes(whole)
    assert copy.name in str(error.value)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_flipped_header_is_refused_or_harmless(
    sound: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """Any byte of the header may change: either one sentence, or every weight as it was."""
    path = shard_paths(sound, QKV)[0]
    whole = bytearray(path.read_bytes())
    length = int.from_bytes(whole[:8], "little")
    at = data.draw(st.integers(0, 8 + length - 1))
    whole[at] = data.draw(st.integers(0, 255))
    copy = tmp_path / "7" / path.relative_to(sound)
    if not copy.parent.exists():
        shutil.copytree(sound, tmp_path / "7", dirs_exist_ok=True)
    copy.write_bytes(whole)
    age(copy.parent)
    model, problem = None, ""
    try:
        model = load_model(open_checkpoint(tmp_path / "7"))
    except CheckpointError as error:
        problem = str(error)
    copy.write_bytes(path.read_bytes())
    if model is None:
        assert "qkv_proj" in problem
        return
    expected = load_model(open_checkpoint(sound)).state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())


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
    load_model(check(folder))
    assert not sprung.exists()


def test_a_writer_at_work_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shard_paths(folder, NORM)[0]
    content = path.read_bytes()
    path.write_bytes(content)
    checkpoint = open_checkpoint(folder)
    check_complete(checkpoint)  # fresh, but nothing changes

    def write_meanwhile(_: float) -> None:
        path.write_bytes(content[:-1])

    monkeypatch.setattr("time.sleep", write_meanwhile)
    with pytest.raises(IncompleteCheckpoint, match="being written"):
        check_complete(checkpoint)


def test_latest_txt_vouches_for_a_fresh_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "latest.txt").write_text("7")
    path = shard_paths(folder, NORM)[0]
    path.write_bytes(path.read_bytes())
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("looked twice"))
    check_complete(open_checkpoint(folder.parent))


def test_replaced_between_opening_and_loading(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    rewrite(shard_paths(folder, NORM)[0], torch.zeros(32))
    with pytest.raises(IncompleteCheckpoint, match="changed since it was opened"):
        load_model(checkpoint)


def test_tokenizer_larger_than_the_embedding(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    check_tokenizer_fits(checkpoint, 60)
    with pytest.raises(CheckpointError, match=r"60 rows.*ids up to 60"):
        check_tokenizer_fits(checkpoint, 61)

"""Keys of a configuration that are not known here, and two files that do not say the same."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.__main__ import main
from evaluation.checkpoints.architecture import parse_architecture
from evaluation.checkpoints.format import open_checkpoint, read_architecture
from evaluation.errors import CheckpointError, UnsupportedCheckpoint
from tests.checkpoints.nanotron import TRAINING, Config, llama, make_checkpoint, moe, qwen2


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (llama(qk_norm=True), "'qk_norm' is True, a key that Nanotron's Llama does not have"),
        (llama(residual_multiplier=0.22), "'residual_multiplier' is 0.22"),
        (llama(sliding_window_size=4), "'sliding_window_size' is 4, .* Nanotron's Llama"),
        (llama(no_rope_layer=2), "'no_rope_layer' is 2"),
        (llama(moe_config=moe()), "'moe_config' is keys and values"),
        (llama(rope_seq_len_interpolation_factor=2.0), "'rope_seq_len_interpolation_factor' is 2.0"),
        (qwen2(sliding_window=4), "'sliding_window' is 4, .* Nanotron's Qwen2"),
        (qwen2(layer_types=["sliding_attention"]), "'layer_types' is a list \\(1\\)"),
        (qwen2(**{"a\nb": "c" * 900}), r"'a.nb' is 'ccc"),
        (qwen2(moe_config=moe(norm_topk_prob=True)), "'moe_config.norm_topk_prob' is True"),
    ],
)  # fmt: skip
def test_a_key_that_may_change_the_model_is_refused(config: Config, named: str) -> None:
    with pytest.raises(UnsupportedCheckpoint, match=f"^here: {named}") as raised:
        parse_architecture(config, False, None, "here")
    assert len(str(raised.value)) < 400
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"qk_norm": False, "qk_norm_eps": None, "logit_scale": 1.0, "clip": 0, "layer_types": []},
        {"attention_bias": True, "_attn_implementation": "sdpa", "_new_kernel": "fast"},
        {"z_loss_enabled": True, "z_loss_coefficient": 1e-4, "is_mamba_config": False},
        {"rope_scaling": {"factor": 8.0}, "use_cache": True, "dtype": "bfloat16"},
    ],
)
def test_a_key_that_changes_nothing_is_left_out(keys: dict[str, Any]) -> None:
    found = parse_architecture(llama(**keys), False, None, "here")
    assert found == parse_architecture(llama(), False, None, "here")


def with_both(folder: Path, config: Config, trained: Config) -> Path:
    model = {**TRAINING["model"], "model_config": trained}
    make_checkpoint(folder / "7", config, training={**TRAINING, "model": model})
    return folder / "7"


@pytest.mark.parametrize(
    ("config", "trained", "named"),
    [
        (llama(rope_theta=500_000.0), llama(), "`rope_theta` is 500000.0, but config.yaml says 1000.0"),
        (llama(hidden_act="gelu"), llama(), "`hidden_act` is 'gelu'"),
        (llama(), llama(num_hidden_layers=40), "`num_hidden_layers` is 2, but .* 40"),
        (qwen2(sliding_window_size=4), qwen2(), "`sliding_window_size` is 4, but .* None"),
        (qwen2(moe_config=moe()), qwen2(moe_config=moe(top_k=1)), "`moe_config` is keys and values"),
        (llama(), qwen2(), "`is_llama_config` is True, but .* None"),
    ],
)  # fmt: skip
def test_two_files_that_contradict_each_other(
    tmp_path: Path, config: Config, trained: Config, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_both(tmp_path, config, trained)
    with pytest.raises(CheckpointError, match=f"model_config.json: {named}"):
        open_checkpoint(folder)
    assert main(["inspect", str(folder)]) == 1
    assert "if it was changed on purpose" in capsys.readouterr().err
    (folder / "config.yaml").write_text(
        yaml.safe_dump({**TRAINING, "model": {**TRAINING["model"], "model_config": config}})
    )
    assert read_architecture(open_checkpoint(folder)).hidden_size == 32


@pytest.mark.parametrize(
    "trained",
    [
        {},
        {"rms_norm_eps": "1e-05", "vocab_size": 60},  # as YAML reads it
        {"num_key_value_heads": None, "max_position_embeddings": 9, "initializer_range": 1},
        {"rope_theta": 1000, "new": "key"},
    ],
)
def test_two_files_that_say_the_same(tmp_path: Path, trained: Config) -> None:
    folder = with_both(tmp_path, llama(), trained)
    assert open_checkpoint(folder).model_config == json.loads(json.dumps(llama()))


def test_a_folder_that_holds_another_step_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_checkpoint(tmp_path / "20", llama())
    for _ in range(2):
        assert open_checkpoint(tmp_path / "20").step == 20
    (named,) = [
        record.message for record in caplog.records if "is taken for step" in record.message
    ]
    assert "is taken for step 20" in named
    assert "its config.yaml says step 12" in named


def test_tables_without_an_end_are_refused(tmp_path: Path) -> None:
    deep: Config = {}
    for _ in range(300):
        deep = {"a": deep}
    endless: Config = {}
    endless["a"] = endless
    folder = with_both(tmp_path, qwen2(moe_config=None), qwen2(moe_config=endless))
    (folder / "model_config.json").write_text(json.dumps(qwen2(moe_config=deep)))
    with pytest.raises(CheckpointError, match="stands inside what it repeats"):
        read_architecture(open_checkpoint(folder))

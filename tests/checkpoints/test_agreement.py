"""A checkpoint fits its stage: tokenizers at other paths, end tokens, vocabularies."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkpoints.agreement import check_agreement, other_end, tokenizer_warnings
from evaluation.checkpoints.format import open_checkpoint
from evaluation.errors import CheckpointError
from evaluation.settings.plan import StagePlan
from evaluation.settings.stage import Assumed
from tests.checkpoints.huggingface import save_model
from tests.checkpoints.nanotron import TRAINING, llama, make_checkpoint
from tests.prefill.plans import make_plan

SAVED = {"vocab_size": 58, "bos_token_id": 0, "eos_token_id": 3}


@pytest.fixture
def plan(tmp_path: Path) -> StagePlan:
    """A stage of one step, with a tokenizer that prefill has saved."""
    made = make_plan(tmp_path / "cache", Path("org/tok"), sequence_length=2048)
    stage = made.stage.model_copy(update={"given": str(tmp_path), "steps": (7,)})
    made = replace(made, stage=stage)
    made.tokenizer_folder.mkdir(parents=True)
    for name, content in (("tokenizer.json", "{}"), ("meta.json", json.dumps(SAVED))):
        (made.tokenizer_folder / name).write_text(content)
    return made


def trained(folder: Path, name: str, **config: Any) -> Path:
    tokenizer = {"tokenizer": {"tokenizer_name_or_path": name}}
    ids = {"bos_token_id": 0, "eos_token_id": 3, **config}
    make_checkpoint(folder / "7", llama(**ids), training=TRAINING | tokenizer)
    return folder / "7"


@pytest.mark.parametrize(
    ("name", "config", "agrees"),
    [
        ("org/tok", {"eos_token_id": 5}, True),
        ("other/tok", {}, False),
        ("/gone/tok", {}, True),
        ("/gone/tok", {"eos_token_id": 5}, False),
        ("/gone/tok", {"bos_token_id": None, "eos_token_id": None}, False),
        ("/gone/tok", {"vocab_size": 56}, False),
        ("/gone/tok", {"vocab_size": 2000}, False),
        ("here", {}, True),
        ("here, another", {}, False),
    ],
)
def test_a_tokenizer_by_another_path(
    plan: StagePlan,
    tmp_path: Path,
    name: str,
    config: dict[str, Any],
    agrees: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if name.startswith("here"):
        (tmp_path / "moved").mkdir()
        (tmp_path / "moved/tokenizer.json").write_text("[]" if "another" in name else "{}")
        name = str(tmp_path / "moved")
    checkpoint = open_checkpoint(trained(tmp_path, name, **config))
    if not agrees:
        with pytest.raises(CheckpointError, match=r"7: trained with tokenizer .*also_known_as"):
            check_agreement(plan, checkpoint)
        assert "no checkpoint is scored" in " ".join(tokenizer_warnings(plan, {"s": plan}))
        return
    with caplog.at_level(logging.WARNING):
        check_agreement(plan, checkpoint)
    assert caplog.text.count("is taken for org/tok") == (name != "org/tok")


def test_another_end_token_is_named(plan: StagePlan, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(trained(tmp_path, "org/tok", eos_token_id=5))
    assert "ends a text with token 3" in other_end(plan, checkpoint)
    (warning,) = tokenizer_warnings(plan, {"s": plan})
    assert f"{checkpoint.path} with 5: documents are separated by 3" in warning
    assert other_end(plan, open_checkpoint(trained(tmp_path / "typed", "t", eos_token_id=2))) == ""
    save_model(tmp_path / "hf")
    (tmp_path / "hf/generation_config.json").write_text('{"eos_token_id": [1, 9]}')
    assert "with 1, 9:" in other_end(plan, open_checkpoint(tmp_path / "hf"))
    (tmp_path / "hf/generation_config.json").write_text('{"eos_token_id": [3]}')
    assert other_end(plan, open_checkpoint(tmp_path / "hf")) == ""


@pytest.mark.parametrize(
    ("training", "named"),
    [(None, "missing, so"), (TRAINING | {"tokenizer": None}, "names no tokenizer")],
)
def test_agreement_is_assumed_only_where_the_stage_says_so(
    plan: StagePlan, tmp_path: Path, training: dict[str, Any] | None, named: str
) -> None:
    make_checkpoint(tmp_path / "7", llama(), training=training)
    checkpoint = open_checkpoint(tmp_path / "7", use_mup=False)
    with pytest.raises(
        CheckpointError, match=rf"config\.yaml: {named}.*s\.assume: {{use_mup: false"
    ):
        check_agreement(plan, checkpoint)
    stage = plan.stage.model_copy(update={"assume": Assumed(use_mup=False)})
    check_agreement(replace(plan, stage=stage), checkpoint)

"""A checkpoint without config.yaml: what it would say is assumed only where that is written down."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from evaluation.__main__ import main
from evaluation.checkpoints.agreement import check_agreement
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.errors import CheckpointError
from evaluation.settings.config import Assumed
from evaluation.settings.plan import StagePlan
from tests.checkpoints.nanotron import TRAINING, forward, llama, make_checkpoint, qwen2
from tests.prefill.plans import make_plan

IDS = torch.tensor([3, 17, 42, 5, 9, 59, 0, 21])


def plan(folder: Path, use_mup: bool | None = None) -> StagePlan:
    made = make_plan(folder / "cache", Path("some/tokenizer"), sequence_length=2048)
    assumed = None if use_mup is None else Assumed(use_mup=use_mup)
    return replace(made, stage=made.stage.model_copy(update={"assume": assumed}))


@pytest.mark.parametrize("use_mup", [False, True])
def test_mup_as_it_is_said(tmp_path: Path, use_mup: bool) -> None:
    tensors = make_checkpoint(tmp_path / "7", llama(), training=None)
    with pytest.raises(CheckpointError, match=r"config\.yaml is missing.*muP"):
        load_model(open_checkpoint(tmp_path / "7"))
    model = load_model(open_checkpoint(tmp_path / "7", use_mup=use_mup), dtype=torch.float64)
    expected = forward(tensors, llama(), IDS, mup=use_mup)
    assert torch.allclose(model(IDS[None]).logits[0], expected, atol=1e-5, rtol=1e-4)
    other = forward(tensors, llama(), IDS, mup=not use_mup)
    assert float((other - expected).norm() / expected.norm()) > 0.01


def test_what_is_assumed_is_part_of_the_identity(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "7", llama(), training=None)
    said = [
        open_checkpoint(tmp_path / "7", use_mup=value).identity for value in (None, True, False)
    ]
    assert len(set(said)) == 3
    (tmp_path / "7/config.yaml").write_text(yaml.safe_dump(TRAINING))
    known = open_checkpoint(tmp_path / "7").identity
    assert open_checkpoint(tmp_path / "7", use_mup=False).identity == known
    with pytest.raises(CheckpointError, match=r"says `use_mup: false`, but true was given"):
        open_checkpoint(tmp_path / "7", use_mup=True)


def test_agreement_is_assumed_only_where_the_stage_says_so(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "7", qwen2(), training=None)
    with pytest.raises(
        CheckpointError, match=r"config\.yaml: missing.*stages\.s\.assume: {use_mup"
    ):
        check_agreement(plan(tmp_path), open_checkpoint(tmp_path / "7"))
    check_agreement(plan(tmp_path, False), open_checkpoint(tmp_path / "7", use_mup=False))


def test_a_tokenizer_that_was_not_recorded(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "7", llama(), training=TRAINING | {"tokenizer": None})
    checkpoint = open_checkpoint(tmp_path / "7")
    with pytest.raises(CheckpointError, match=r"config\.yaml: names no tokenizer.*use_mup: false"):
        check_agreement(plan(tmp_path), checkpoint)
    check_agreement(plan(tmp_path, False), checkpoint)


def test_commands_are_told_by_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_checkpoint(tmp_path / "7", llama(), training=None)
    requests = tmp_path / "r.jsonl"
    requests.write_text('{"context_tokens": [1], "continuation_tokens": [2]}\n')
    files = ["--requests", str(requests), "--output", str(tmp_path / "out.jsonl")]
    score = ["loglikelihood", str(tmp_path / "7"), *files]
    for command in (["inspect", str(tmp_path / "7")], score):
        assert main(command) == 1
        assert "--no-use-mup" in capsys.readouterr().err
        for said in ("--use-mup", "--no-use-mup"):
            assert main([*command, said]) == 0

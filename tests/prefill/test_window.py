"""The default window for generation is what the model's own configuration says."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.prefill.prompts import generation_window
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stage
from tests.workflow import world as worlds
from tests.workflow.world import World

FILES: dict[str, tuple[dict[str, Any], int]] = {
    "Hugging Face": ({"10/config.json": {"max_position_embeddings": 2048}}, 2048),
    "Nanotron without config.yaml": (
        {"10/model_config.json": {"max_position_embeddings": 128}},
        128,
    ),
    "Nanotron": (
        {
            "10/config.yaml": {
                "model": {"model_config": {"max_position_embeddings": 96}},
            },
            "9/config.json": {"max_position_embeddings": 2048},
        },
        96,
    ),
}


def window(paper: World, **keys: Any) -> int:
    paper.change(**keys)
    return generation_window(plan_stage(load_config(paper.config), "one"))


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.chdir(tmp_path)
    return worlds.paper(tmp_path, "one")


def write(paper: World, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = paper.folder / "ckpts/one" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content) + "\n")


@pytest.mark.parametrize("case", FILES)
def test_the_default_is_of_the_first_checkpoint(paper: World, case: str) -> None:
    files, expected = FILES[case]
    write(paper, files)
    assert window(paper) == expected
    assert window(paper, generation={"window": 1024}) == 1024


def test_a_training_configuration_goes_before_checkpoints(paper: World) -> None:
    write(paper, FILES["Hugging Face"][0])
    training = FILES["Nanotron"][0]["10/config.yaml"]
    (paper.folder / "train.yaml").write_text(yaml.safe_dump(training))
    assert window(paper, training_config="train.yaml") == 96


def test_a_half_written_checkpoint_is_passed_over(paper: World) -> None:
    write(paper, {"20/config.json": {"max_position_embeddings": 2048}})
    (paper.folder / "ckpts/one/10/config.json").write_text('{"max_position')
    assert window(paper) == 2048

"""What a training's config.yaml says of its tokenizer is used or refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stage


def planned(folder: Path, more: dict[str, Any]) -> StagePlan:
    (folder / "suites").mkdir(exist_ok=True)
    (folder / "suites/one.yaml").write_text("slices: {web: {dataset: w}}\n")
    section = {"tokenizer_name_or_path": "org/t", **more}
    content = {"tokenizer": section, "tokens": {"sequence_length": 64}}
    (folder / "train.yaml").write_text(yaml.safe_dump(content))
    stage = {"checkpoints": "ckpts", "steps": [1], "suites": ["one"]}
    raw = {
        "results": str(folder / "results"),
        "cache": "cache",
        "stages": {"s": stage},
        "suites": str(folder / "suites"),
        "training_config": str(folder / "train.yaml"),
    }
    return plan_stage(validate_config(raw, "mine.yaml"), "s")


@pytest.mark.parametrize(("written", "used"), [("v1.1", "v1.1"), (None, None), ("", None)])
def test_its_revision_is_used(tmp_path: Path, written: str | None, used: str | None) -> None:
    assert planned(tmp_path, {"tokenizer_revision": written}).tokenizer.revision == used

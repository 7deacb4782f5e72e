"""Configuration: how a stage is resolved, what is kept, and where the order of keys is content."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import ConfigError
from evaluation.flow.keys import collect_key, score_key
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.config import validate_config
from evaluation.settings.planning import plan_stage, plan_stages
from tests.settings.test_wrong_settings import suite_files

WEB = {"slices": {"web": {"dataset": "w"}}}


def content(folder: Path, **stage: Any) -> dict[str, Any]:
    """Two stages of one slice, the second one with these keys."""
    return {
        "results": str(folder / "results"),
        "cache": "cache",
        "suites": str(suite_files(folder, base=WEB)),
        "tokenizer": {"name": "org/tok"},
        "sequence_length": 64,
        "stages": {
            "stage1": {"checkpoints": "ckpts/1", "steps": [10, 20], "suites": ["base"]},
            "stage2": {"checkpoints": "ckpts/2", "steps": [5], "suites": ["base"], **stage},
        },
    }


def test_one_name_for_two_things_in_one_cache_is_refused(tmp_path: Path) -> None:
    raw = content(tmp_path, suites=["other"])
    suite_files(tmp_path, base=WEB, other={"slices": {"web": {"dataset": "v"}}})
    with pytest.raises(ConfigError, match="'web' is defined differently"):
        plan_stages(validate_config(raw, "mine.yaml"))
    raw["stages"]["stage2"]["sequence_length"] = 128  # another cache: no clash
    plans = plan_stages(validate_config(raw, "mine.yaml"))
    assert plans["stage1"].cache != plans["stage2"].cache


@pytest.mark.parametrize("origin", ["train.yaml", "ckpts/5/config.yaml"])
def test_tokenizer_and_length_of_the_training(tmp_path: Path, origin: str) -> None:
    """From `training_config`, or from the first checkpoint where nothing is given."""
    training = tmp_path / origin
    training.parent.mkdir(parents=True, exist_ok=True)
    training.write_text(
        "tokenizer: {tokenizer_name_or_path: org/t}\ntokens: {sequence_length: 4096}"
    )
    raw = content(tmp_path, checkpoints=str(tmp_path / "ckpts"))
    if origin == "train.yaml":
        raw["stages"]["stage2"]["training_config"] = str(training)
    else:
        del raw["tokenizer"], raw["sequence_length"], raw["stages"]["stage1"]
    plan = plan_stage(validate_config(raw, "mine.yaml"), "stage2")
    assert (plan.tokenizer.name, plan.sequence_length) == ("org/t", 4096)


LET, SEEN = {"a": "b", "b": "question"}, {"kind": "pattern", "pattern": "x"}
TASK = {"dataset": "a/b", "choices": "choices", "gold": "label", "context": "{{ a }}", "let": LET}
ASKED = {"dataset": "a/b", "prompt": "{{ a }}", "chat": False, "max_new_tokens": 4, "let": LET}
VIEWED = {
    "document": {"gold": "a"},
    "strata": {"level": "{{ a }}", "subject": "{{ b }}"},
    "verifiers": {"strict": SEEN, "lenient": SEEN},
}
ABOUT = {"fingerprint": "f", "prepend_bos": False, "name": "t", "class": "C"}
ABOUT |= {"vocab_size": 9, "bos_token_id": None, "eos_token_id": 0}


def keys(folder: Path, turned: str = "") -> dict[str, str]:
    """All keys; the keys under one are in the other order."""

    def suite_of(part: Any, name: str = "") -> Any:
        if not isinstance(part, dict):
            return part
        items = {key: suite_of(value, key) for key, value in part.items()}
        return dict(reversed(items.items())) if name == turned else items

    suite = {"tasks": {"quiz": TASK, "q": TASK}, "generation_tasks": {"sums": ASKED | VIEWED}}
    (folder / "one.yaml").write_text(yaml.safe_dump(suite_of(suite), sort_keys=False))
    stage = {"checkpoints": "ckpts", "steps": [5], "suites": ["one"]}
    config = validate_config({**content(folder), "stages": {"one": stage}}, "mine.yaml")
    plan = plan_stage(config, "one")
    subject = step_subject(plan, 5)
    return {
        "questions": PREFILLS["tier3"].define(plan, "quiz", ABOUT),
        "prompts": PREFILLS["tier5"].define(plan, "sums", ABOUT, asked=True),
        "documents": PREFILLS["tier5"].define(plan, "sums", ABOUT),
        "score": score_key(plan, subject, (), "", {}),
        "collect": collect_key(subject, "score", None, {}),
    }


@pytest.mark.parametrize(
    ("turned", "others"),
    [
        ("let", {"questions", "prompts", "documents", "collect"}),
        ("strata", {"documents", "collect"}),
        ("verifiers", {"collect"}),
        ("tasks", {"collect"}),
        ("quiz", set()),
    ],
)
def test_what_depends_on_the_order_of_keys(tmp_path: Path, turned: str, others: set[str]) -> None:
    old, new = keys(tmp_path), keys(tmp_path, turned)
    assert {name for name, key in new.items() if key != old[name]} == others

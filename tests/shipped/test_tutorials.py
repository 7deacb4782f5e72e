"""docs/tutorials.md, followed as a user would: its files are written, its commands run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.__main__ import main
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages
from tests.conftest import ROOT
from tests.shipped.mirrors import write_mirrors

PAGE = (ROOT / "docs/tutorials.md").read_text()
CONFIG = "config/config.yaml"
FILE = re.compile(r"```(?:yaml|json)\n# (\S+?)(?::[^\n]*)?\n(.*?)```", re.DOTALL)
READS_THINKING = (
    "{% for message in messages %}{{ message.content }}\n{% endfor %}{% if add_generation_prompt %}{% "
    "if enable_thinking %}<think>\n{% else %}</think>\n{% endif %}{% endif %}"
)


@pytest.fixture
def followed(tmp_path: Path, smollm2: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files of the page, and a configuration with its keys."""
    stage = {"checkpoints": "ckpts", "steps": [1]}
    suites = ["sums", "capitals", "plain_chat"]
    config: dict[str, Any] = {"results": "results", "cache": "cache", "sequence_length": 2048}
    config |= {"tokenizer": {"name": str(smollm2)}, "stages": {"sft": {**stage, "suites": suites}}}
    config["mirrors"] = {"*": str(write_mirrors(tmp_path / "mirrors"))}
    for name, text in FILE.findall(PAGE):
        if name == CONFIG:
            config |= yaml.safe_load(text)
        else:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    (tmp_path / "config").mkdir()
    (tmp_path / CONFIG).write_text(yaml.safe_dump(config))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> list[list[str]]:
    found = re.findall(r"^python -m evaluation (prefill .*)$", PAGE, re.M)
    return [line.replace("STAGE", "sft").split() for line in found]


def lines(tier: str, name: str, file: str) -> list[dict[str, Any]]:
    plan = plan_stages(load_config(Path(CONFIG)))["sft"]
    text = (plan.cache_folder(tier, name) / file).read_text()  # type: ignore[arg-type]
    return [json.loads(line) for line in text.splitlines()]


def test_thinking_against_non_thinking(followed: Path) -> None:
    suite = followed / "suites/sums.yaml"
    suite.write_text(f"chat_template: {json.dumps(READS_THINKING)}\n{suite.read_text()}")
    assert main(commands()[0]) == 0
    thinking, other = (
        [line["prompt"] for line in lines("tier5", name, "prompts.jsonl")]
        for name in ("sums_thinking", "sums_no_thinking")
    )
    assert thinking == ["What is 17 + 25?\n<think>\n", "What is 9 * 8?\n<think>\n"]
    assert other == [text.replace("<think>", "</think>") for text in thinking]


def test_a_ranked_task(followed: Path) -> None:
    assert main(commands()[1]) == 0
    first, second = lines("tier3", "capitals", "examples.jsonl")
    assert first["contexts"][0]["text"] == "The capital of France is"
    assert [one["text"] for one in second["candidates"]] == [" Bergen", " Oslo", " Narvik"]
    assert (first["gold"], second["gold"]) == (0, 1)


def test_a_chat_template(followed: Path) -> None:
    assert main(["prefill", "--stage", "sft", "--generation", "greetings"]) == 0
    (line,) = lines("tier5", "greetings", "prompts.jsonl")
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    assert line["prompt"] == shown[1]

"""Commands by hand: what they read and is outdated is refused, with what to type."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.subjects import step_subject
from evaluation.commands.parser import build_parser
from evaluation.errors import CacheError, ResultsError
from tests.dependencies.evaluated import write_evaluated
from tests.watching.stand_in import leave_records
from tests.workflow.world import World

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of two stages with records of all that a run leaves of them."""
    return write_evaluated(tmp_path)


def run(config: Path, command: str) -> int:
    words = shlex.split(command.format(config=config))
    given = [] if words[0] == "compare" else ["--config", str(config)]
    options = build_parser().parse_args([*words, *given])
    code: int = options.run(options)
    return code


def edited(config: Path, edit: Edit) -> None:
    content = yaml.safe_load(config.read_text())
    edit(content)
    config.write_text(yaml.safe_dump(content, sort_keys=False))


def another_dtype(content: dict[str, Any]) -> None:
    content["scoring"] = {"dtype": "bfloat16"}


def another_group(content: dict[str, Any]) -> None:
    path = Path(content["suites"]) / "all.yaml"
    suite = yaml.safe_load(path.read_text())
    suite["tasks"]["quiz"]["group"] = "hard"
    path.write_text(yaml.safe_dump(suite, sort_keys=False))


COLLECT_ALL = "collect --stage second --step 10 20"
CASES: dict[Edit, dict[str, str]] = {
    another_group: {
        "report --stage second": COLLECT_ALL,
        "report": "collect --stage first --step 100",
        "compare {config} {config}": "collect --stage first --step 100",
    },
    another_dtype: {
        "collect --stage second --step 10": "score --stage second --step 10",
        "collect --stage second --bridge": "score --stage second --bridge",
        "report --stage first": "score --stage first --step 100",
    },
}
"""Commands by what was edited, with the one that each asks for."""


@pytest.mark.parametrize("edit", CASES)
def test_what_is_outdated_is_not_read(config: Path, edit: Edit) -> None:
    edited(config, edit)
    for command, remedy in CASES[edit].items():
        name, _, rest = remedy.partition(" ")
        with pytest.raises(ResultsError) as caught:
            run(config, command)
        typed = f"run `python -m evaluation {name} --config {config} {rest}`"
        assert typed in str(caught.value), command


def test_data_edited_after_prefill_is_prefilled_first(world: World) -> None:
    leave_records(step_subject(world.plans["stage1"], 10))
    path = world.folder / "data/quiz/test.jsonl"
    path.write_text(path.read_text().replace('"label": 0', '"label": 1', 1))
    with pytest.raises(ResultsError, match="run `python -m evaluation score"):
        run(world.config, "collect --stage stage1 --step 10")
    with pytest.raises(CacheError, match=r"quiz was made from other data .* prefill"):
        run(world.config, "score --stage stage1 --step 10")

"""What the trainer deletes after it was scored stays; what was scored otherwise does not."""

import shutil

import pytest
import yaml

from evaluation.dependencies.known_steps import known_steps
from evaluation.settings.config import load_config
from tests.watching.conftest import Watched


@pytest.fixture
def scored(watched: Watched) -> Watched:
    """Steps 10 and 20, scored; then 10 was deleted."""
    for step in (10, 20):
        watched.copy(step)
    assert watched.watcher(once=True).watch() == 0
    shutil.rmtree(watched.checkpoints / "10")
    return watched


def steps(watched: Watched) -> tuple[int, ...]:
    return known_steps(load_config(watched.world.config), "stage1")


def test_a_deleted_step_stays_and_is_not_scored_again(scored: Watched) -> None:
    assert steps(scored) == (10, 20)
    assert scored.watcher(once=True).watch() == 0
    assert scored.watcher(until_step=20).watch() == 0
    assert scored.scored() == ["10 whole", "20 whole"]
    shutil.rmtree(scored.checkpoints)
    assert steps(scored) == (10, 20)


def test_only_multiples_where_these_are_asked_for(scored: Watched) -> None:
    text = scored.world.config.read_text()
    scored.world.config.write_text(text.replace("steps: all", "steps: {every: 20}"))
    assert steps(scored) == (20,)


def test_what_would_be_scored_otherwise_now_is_left_out(scored: Watched) -> None:
    scored.world.change(scoring={"dtype": "bfloat16"})
    assert steps(scored) == (20,)


def test_steps_of_a_training_that_was_restarted_are_left_out(
    scored: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """It has not yet come as far as the one before it."""
    path = scored.checkpoints / "20/config.yaml"
    scored.copy(10)
    shutil.rmtree(scored.checkpoints / "20")
    config = scored.checkpoints / "10" / path.name
    content = yaml.safe_load(config.read_text())
    content["optimizer"] = {"learning_rate": 1.0}
    config.write_text(yaml.safe_dump(content))
    assert steps(scored) == (10,)
    assert "results of step 20 are left out: another training saved them" in caplog.text


def test_without_results_it_is_gone_for_good(scored: Watched) -> None:
    shutil.rmtree(scored.world.results("stage1", "by_checkpoint", "step_10"))
    assert steps(scored) == (20,)


def test_a_list_is_what_it_says(scored: Watched) -> None:
    scored.world.change_stage("stage1", steps=[20, 10, 30])
    assert steps(scored) == (20, 10, 30)

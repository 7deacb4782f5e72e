"""Which steps of a folder another training saved."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.trainings import (
    TrainingId,
    leftovers,
    recorded_training,
    training_id,
)
from tests.checkpoints.nanotron import TRAINING

FIRST, CONTINUED, OTHER = (
    TrainingId("/ckpts", *names) for names in (("m", "a"), ("m", "b"), ("n", "a"))
)
CASES: dict[str, tuple[dict[int, Any], dict[int, Any], int | None, set[int]]] = {
    "rolling deletion": ({300: FIRST}, {100: FIRST, 200: FIRST}, 300, set()),
    "continued with other data": ({300: CONTINUED}, {100: FIRST, 200: FIRST}, 300, set()),
    "restarted, and not yet as far": ({100: CONTINUED}, {300: FIRST, 400: FIRST}, None, {300, 400}),
    "restarted unchanged, by latest.txt": ({100: FIRST}, {300: FIRST}, 100, {300}),
    "the last one was moved away": ({100: FIRST}, {300: FIRST}, 300, set()),
    "restarted with other steps": ({150: CONTINUED}, {100: FIRST, 200: FIRST}, 150, {100, 200}),
    "restarted, its first steps deleted": (
        {600: CONTINUED}, {150: CONTINUED, 100: FIRST, 200: FIRST}, None, {100, 200},
    ),
    "another model": ({300: OTHER}, {100: FIRST, 200: FIRST}, 300, {100, 200}),
    "records of version 1": ({300: FIRST}, {100: None, 400: None}, None, set()),
    "no configuration now": ({300: None}, {100: FIRST, 400: FIRST}, None, set()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_leftovers(case: str) -> None:
    on_disk, deleted, latest, others = CASES[case]
    assert leftovers(on_disk, deleted, latest) == others


CHANGES: dict[str, tuple[dict[str, Any], tuple[bool, bool]]] = {
    "the same": ({}, (True, True)),
    "a later step": ({"general": {"step": 13}}, (True, True)),
    "other nodes": ({"parallelism": {"dp": 64}}, (True, True)),
    "a seed": ({"general": {"step": 12, "seed": 7}}, (False, True)),
    "a learning rate": ({"optimizer": {"learning_rate": 1.0}}, (True, False)),
    "the model": ({"model": {"init_method": {"std": 0.5}}}, (False, True)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_training_is_told_by(tmp_path: Path, change: str) -> None:
    found = []
    for step, changes in ((1, {}), (2, CHANGES[change][0])):
        (tmp_path / str(step)).mkdir()
        content = yaml.safe_dump(TRAINING | changes)
        (tmp_path / str(step) / "config.yaml").write_text(content)
        found.append(training_id(tmp_path / str(step)))
    first, second = found
    assert first
    assert second
    assert first.folder == second.folder
    assert (first.model == second.model, first.course == second.course) == CHANGES[change][1]
    assert recorded_training(list(first)) == first


def test_without_a_configuration(tmp_path: Path) -> None:
    assert training_id(tmp_path) is None
    for value in (None, "abc", ["a", "b"]):
        assert recorded_training(value) is None

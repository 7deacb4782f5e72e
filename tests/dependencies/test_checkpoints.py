"""Which change of a checkpoint makes what was scored of it outdated."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from evaluation.checkpoints.subjects import bridge_subject, step_subject
from evaluation.checkpoints.training import METADATA
from evaluation.dependencies.caches import CacheStates, stage_entries
from evaluation.dependencies.known_steps import is_retained
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import COLLECT, SCORE
from evaluation.grading.collect import origin
from evaluation.records import read_record, write_record
from evaluation.reporting.status import stage_status
from evaluation.settings.plan import StagePlan
from tests.checkpoints.test_state import rewrite, shard
from tests.watching.stand_in import leave_records
from tests.workflow.world import World

Plans = Mapping[str, StagePlan]


@pytest.fixture
def plans(world: World) -> Plans:
    shutil.copytree(world.folder / "ckpts", world.folder / "others")
    return world.plans


def leads_elsewhere(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(folder.parents[2] / "others/stage1" / folder.name)


ANOTHER: dict[str, Callable[[Path], object]] = {
    "a shard rewritten in place": lambda f: rewrite(shard(f)),
    "a link that leads elsewhere now": leads_elsewhere,
}
LOST: dict[str, Callable[[Path], object]] = {
    "one shard is deleted": lambda f: shard(f).unlink(),
    "all weights are deleted": lambda f: shutil.rmtree(f / "model"),
    "it is deleted": shutil.rmtree,
}


@pytest.mark.parametrize("change", [*ANOTHER, *LOST])
def test_scored_anew_if_it_is_another(plans: Plans, change: str) -> None:
    """On both sides of a bridge, which is the same checkpoint; kept if nothing could score it again."""
    subjects = step_subject(plans["stage1"], 20), bridge_subject(plans["stage2"], plans)
    for subject in subjects:
        leave_records(subject)
    assert not any(Outdated(plans)(SCORE, subject) for subject in subjects)
    assert not is_retained(subjects[0], Outdated(plans))
    {**ANOTHER, **LOST}[change](subjects[0].checkpoint)
    outdated = Outdated(plans)
    outdated.look_at(subjects)
    assert [outdated(SCORE, subject) for subject in subjects] == [change in ANOTHER] * 2
    is_partly = change in LOST and change != "it is deleted"
    assert [outdated.is_partly_deleted(subject) for subject in subjects] == [is_partly] * 2
    state = stage_status(plans["stage1"], (20,), outdated)["subjects"]["20"]
    assert state["partly_deleted"] is is_partly
    assert is_retained(subjects[0], outdated) == (change in LOST)


def test_scored_by_a_command(plans: Plans) -> None:
    stage = plans["stage1"].stage.model_copy(update={"command": "true"})
    plan = dataclasses.replace(plans["stage1"], stage=stage)
    leave_records(subject := step_subject(plan, 10))
    assert not Outdated({**plans, "stage1": plan})(SCORE, subject)
    rewrite(shard(subject.checkpoint))
    assert Outdated({**plans, "stage1": plan})(SCORE, subject)


def test_a_cache_with_a_damaged_record_is_made_again(plans: Plans, tmp_path: Path) -> None:
    """Snakemake sees that the file is there."""
    (entry, *_) = stage_entries(plans["stage1"])
    copied = shutil.copytree(entry.folder, tmp_path / "entry")
    entry = dataclasses.replace(entry, folder=copied)
    assert CacheStates().state(entry) == "current"
    entry.record.write_text(entry.record.read_text()[:40])
    assert CacheStates().state(entry) == "stale"
    entry.record.unlink()
    assert CacheStates().state(entry) == "missing"


def test_other_scores_of_the_same_file_are_collected_anew(plans: Plans) -> None:
    """A file of the store may hold scores of two prompts; which one is meant, the record says."""
    leave_records(subject := step_subject(plans["stage1"], 10))
    score = read_record(subject.folder, SCORE)
    assert score is not None
    assert not Outdated(plans)(COLLECT, subject)
    about = {**score.about, "tiers": {"tier4": {"prompts": {"colour": "another"}}}}
    write_record(subject.folder, SCORE, score.key, about=about)
    outdated = Outdated(plans)
    assert (outdated(SCORE, subject), outdated(COLLECT, subject)) == (False, True)


def test_tokens_counted_anew_are_shown_and_nothing_is_scored(plans: Plans) -> None:
    """Of a checkpoint that is gone they stay as they were."""
    leave_records(subject := step_subject(plans["stage1"], 10))
    told = dict.fromkeys(("checkpoint", "identity", "tokenizer", "sequence_length"))
    about = {**told, "consumed_tokens": 5}
    assert not Outdated(plans)(COLLECT, subject)
    counted = json.dumps({"metas": {"consumed_tokens_total": 77}})
    (subject.checkpoint / METADATA).write_text(counted)
    outdated = Outdated(plans)
    assert (outdated(SCORE, subject), outdated(COLLECT, subject)) == (False, True)
    assert origin(subject, about)["consumed_tokens"] == 77
    leave_records(subject)
    shutil.rmtree(subject.checkpoint)
    assert not Outdated(plans)(COLLECT, subject)
    assert origin(subject, about)["consumed_tokens"] == 5

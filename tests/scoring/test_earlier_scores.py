"""Scores that version 1 stored under sampled identities: which are used on, and which not."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from evaluation import store as store_module
from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.earlier_identity import earlier_identity, earlier_state
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.locations import real_location
from evaluation.checkpoints.subjects import Subject, step_subject
from evaluation.dependencies.steps import SCORE
from evaluation.records import write_record
from evaluation.scoring.earlier_scores import open_store
from evaluation.store import ScoreStore, StoredScore
from tests.checkpoints.test_state import shard
from tests.workflow.world import World

SCORED = StoredScore(pa.table({"nats": [1.0]}), {"ppl": 2.0})


@pytest.fixture
def subject(world: World, monkeypatch: pytest.MonkeyPatch) -> Subject:
    """A step as version 1 left it."""
    subject = step_subject(world.plans["stage1"], 10)
    identity = earlier_identity(open_checkpoint(Path(str(subject.checkpoint))))
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "_CHECKPOINT", b"unknown then")
        store = ScoreStore(subject.plan.scores, identity)
        store.put("text", "key", SCORED)
        store.pack()
    leave_record(subject, identity)
    return subject


def leave_record(subject: Subject, identity: str) -> None:
    state, location = earlier_state(subject.checkpoint), real_location(subject.checkpoint)
    about = {"identity": identity, "checkpoint_state": state, "location": location}
    write_record(subject.folder, SCORE, "key", about=about)


def carried(subject: Subject) -> bool:
    checkpoint = open_checkpoint(Path(str(subject.checkpoint)))
    store = open_store(subject, checkpoint)
    assert store.identity == Contents().identity(checkpoint)
    return store.find("text", "key") is not None


def test_they_are_used_on(subject: Subject) -> None:
    assert carried(subject)
    assert carried(subject)


def test_not_after_a_change_of_times(subject: Subject) -> None:
    os.utime(shard(Path(str(subject.checkpoint))))
    assert not carried(subject)


def test_not_where_another_checkpoint_had_the_same_identity(
    subject: Subject, caplog: pytest.LogCaptureFixture
) -> None:
    (folder,) = (one for one in subject.plan.scores.iterdir() if one.is_dir())
    leave_record(step_subject(subject.plan, 20), folder.name)
    assert not carried(subject)
    assert "other checkpoints may have the same name there" in caplog.text

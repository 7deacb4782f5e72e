"""Records, the lock, the watcher and Slurm's commands; `tests/histories` judges the whole."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import EvaluationError, OutputError
from evaluation.flow import slurm, watch
from evaluation.flow.caches import Caches
from evaluation.flow.job_logs import is_running, last_error
from evaluation.flow.lock import ResultsLock
from evaluation.flow.targets import COLLECT, SCORE, Targets
from evaluation.flow.watch import Watched
from evaluation.prefill.tiers import PREFILLS
from evaluation.records import read_record, record_path, records_of, write_record
from tests.conftest import ROOT
from tests.histories.warm import well
from tests.workflow.world import BASE, World


def test_a_finished_step_removes_its_older_records(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("content")
    for name in ("a", "b", "b-2"):
        write_record(tmp_path, SCORE, name[0], [tmp_path / "out"], name=name)
        write_record(tmp_path, COLLECT, "other")
        assert list(records_of(tmp_path, SCORE)) == [name]
    record_path(tmp_path, SCORE, "b-2").write_text("{")
    assert read_record(tmp_path, SCORE) is None


@pytest.fixture
def scored(prefilled_world: World, tmp_path: Path) -> World:
    """A step of stage 1 with scores and results of its own."""
    world = prefilled_world.with_results(tmp_path)
    well(world.evaluation("score", "--stage", "stage1", "--step", "10"))
    return world


def test_a_damaged_output_gives_its_target_the_next_number(scored: World) -> None:
    subject = step_subject(scored.plans["stage1"], 10)
    collect = Targets().collect(subject)
    results = subject.folder / "tier3_cf.json"
    results.write_bytes(results.read_bytes() + b"\n")
    again = Targets().collect(subject)
    assert (collect.record is None, again.record, again.name) == (False, None, f"{collect.key}-2")


def test_scores_of_a_command_depend_on_all_of_a_cache(world: World) -> None:
    """The engine reads no gold; a command may."""
    found = []
    for gold in ("label", "0"):
        world.change_suite(
            "base", tasks={"quiz": {**yaml.safe_load(BASE)["tasks"]["quiz"], "gold": gold}}
        )
        plan = world.plans["stage1"]
        PREFILLS["tier3"].make(plan, "quiz")
        stage = plan.stage.model_copy(update={"command": "true"})
        found += [Caches().asked(plan), Caches().asked(replace(plan, stage=stage))]
    assert found[0] == found[2]
    assert found[1] != found[3]


def test_the_lock_names_its_holder_and_is_taken_over_from_the_dead(tmp_path: Path) -> None:
    lock = ResultsLock(tmp_path)
    lock.take()
    with pytest.raises(OutputError, match=f"process {os.getpid()} on .* works on these results"):
        ResultsLock(tmp_path).take()
    lock.release()
    assert not lock.path.exists()
    take = "from evaluation.flow.lock import *; ResultsLock(Path(sys.argv[1])).take()"
    subprocess.run([sys.executable, "-c", f"import sys; {take}", tmp_path], cwd=ROOT, check=True)
    lock.take()  # that process has ended


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for Slurm's commands, which tell of a job of ours here and two others, and log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    jobs = [
        f"1|{slurm.PREFIX}_x|{tmp_path}",
        f"2|{slurm.PREFIX}_y|/elsewhere",
        f"3|train|{tmp_path}",
    ]
    (tmp_path / "jobs").write_text("".join(f"{job}\n" for job in jobs))
    squeue = "[ -e gone ] || cat jobs\n"
    for name, does in (("squeue", squeue), ("scancel", "touch gone\n")):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $@" >> calls\n{does}')
        (tmp_path / name).chmod(0o755)
    return tmp_path / "calls"


def test_orphans_are_jobs_of_ours_in_this_folder(queue: Path) -> None:
    slurm.end_orphans()
    assert "scancel 1\n" in queue.read_text()
    (queue.parent / "gone").unlink()
    (queue.parent / "scancel").write_text("#!/bin/sh\necho the controller is away >&2\nexit 1\n")
    with pytest.raises(EvaluationError, match=r"the controller is away.*start again when `squeue`"):
        slurm.end_orphans()
    (queue.parent / "squeue").write_text("#!/bin/sh\nexit 1\n")
    slurm.end_orphans()  # no cluster is configured on this machine


def test_the_watcher_starts_snakemake_for_what_is_ready(
    scored: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a list whose last step is not saved yet; it ends when a step has come that was waited for."""
    scored.change_stage("stage1", steps=[10, 20, 30])
    calls: list[Any] = []

    def snakemake(watched: Watched) -> int:
        calls.append(watched.arguments)
        return well(scored.evaluation("score", "--stage", "stage1", "--step", "20")).returncode

    monkeypatch.setattr(watch, "_snakemake", snakemake)
    how = {
        "config": scored.config,
        "stage": "stage1",
        "arguments": ["--cores", "1"],
        "interval": 9.0,
        "then": f"touch {scored.config}.round; exit 3",
    }
    assert watch.watch(Watched(**how, until_step=20), sleep=pytest.fail) == 0
    assert calls == [["--cores", "1"]]
    assert Path(f"{scored.config}.round").exists()
    assert watch.watch(Watched(**how, once=True), sleep=pytest.fail) == 0  # step 30 is not there
    assert len(calls) == 1


def test_a_job_that_died_before_it_wrote_its_log_has_slurms_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (log := tmp_path / "20-74b6.log").touch()
    assert (last_error(log), is_running(log)) == (None, True)
    (folder := tmp_path / "logs/slurm/rule_score/results_stage1_20_74b6_").mkdir(parents=True)
    (folder / "5.log").write_text("srun: fatal: no such cluster\nShutting down\n")
    assert (last_error(log), is_running(log)) == ("srun: fatal: no such cluster", False)
    log.write_text("cd /folder && …\n")
    assert (last_error(log), is_running(log)) == (None, True)


def lines_of(*patterns: str) -> list[str]:
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return [line.strip() for path in paths for line in path.read_text().splitlines()]


def test_no_private_part_of_snakemake_is_used() -> None:
    """Of the workflow object, only which files the configuration came from."""
    rules = lines_of("Snakefile", "workflow/Snakefile", "workflow/**/*.smk")
    lines = [*rules, *lines_of("evaluation/**/*.py")]
    used = {one for line in lines for one in re.findall(r"(?<![/\w])workflow\.(\w+)", line)}
    assert used <= {"configfiles"}
    assert [line for line in rules if re.search(r"\w\._\w", line)] == []
    assert {line for line in lines if re.match(r"(from|import)\b.*\bsnakemake", line)} == {
        "from snakemake.utils import min_version",
        "from snakemake.exceptions import WorkflowError",
    }

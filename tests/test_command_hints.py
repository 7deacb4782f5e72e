"""What a run says of itself: commands with the configuration that it was started with, and commits of code and files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.command_hints import (
    CONFIG_VARIABLE,
    PROGRAM,
    STARTED_WITH,
    evaluation,
    note_command,
    note_run,
    snakemake,
)
from evaluation.commits import code_commit, commit_of
from evaluation.orchestration.run_configuration import keep_config, run_config
from evaluation.settings.config import validate_config
from evaluation.settings.effective import origin_of, write_effective
from tests.bridge.folders import make_plans
from tests.histories.warm import run_python
from tests.tables import cases
from tests.workflow.paper import ROOT, Paper
from tests.workflow.world import build_world


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for name in (STARTED_WITH, PROGRAM, "EVALUATION_CONFIG", "SNAKEMAKE_PROFILE"):
        monkeypatch.setenv(name, "")  # put back at the end, whatever the test does
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("config", "shown"),
    [("config/config.yaml", ""), ("a.yaml", "a.yaml"), ("my run.yaml", "'my run.yaml'")],
)
def test_of_a_command_by_hand(config: str, shown: str) -> None:
    note_command(Path(config))
    run, hand = (f" {option} {shown}" if shown else "" for option in ("--configfile", "--config"))
    assert snakemake("prefill") == f"snakemake prefill --profile slurm_profile{run}"
    assert evaluation("doctor") == f"python -m evaluation doctor{hand}"


def test_away_from_the_package_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    note_run([])
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # as a job of the run has it
    command = evaluation("doctor")
    assert command == f"PYTHONPATH={ROOT} python -m evaluation doctor"
    monkeypatch.delenv("PYTHONPATH")
    shell = f"{command} --help".replace(" python ", f" {sys.executable} ")
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert "usage: python -m evaluation doctor" in done.stdout


@pytest.mark.parametrize(("given", "kept", "hand"), cases("command_lines", "runs"))
def test_of_a_run(given: str, kept: str, hand: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    note_run(given.split())
    monkeypatch.setenv("EVALUATION_CONFIG", "results/.config/0/run.yaml")
    note_command(Path("results/.config/0/run.yaml"))  # a job of it
    assert snakemake("prefill") == f"snakemake prefill {kept}"
    assert evaluation("doctor") == (hand or "python -m evaluation doctor")


def test_a_profile_of_the_shell_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "leonardo")
    assert snakemake("prefill") == "snakemake prefill"


def test_what_doctor_advises_plans_what_it_looked_at(tmp_path: Path) -> None:
    """In another folder than the workflow's, and with another configuration than the default one."""
    world = build_world(tmp_path / "world")
    done = world.evaluation("doctor", "--config", str(world.config))
    lines = [line for line in done.stdout.splitlines() if "run `snakemake" in line]
    advice = lines[0].partition("run `")[2].partition("`")[0].split()
    assert lines, done.stdout + done.stderr
    profile = advice.index("--profile")
    assert advice[profile + 1] == str(ROOT / "slurm_profile")
    advice[profile : profile + 2] = ["--cores", "1"]
    planned = run_python(["-m", *advice, "-n"], world.folder, cold=True)
    assert planned.returncode == 0, planned.stderr
    assert "prefill_slice" in planned.stdout
    assert "stage4" not in planned.stdout


def test_a_run_and_its_jobs_advise_the_same(tmp_path: Path) -> None:
    paper = Paper(tmp_path / "paper", {"one": {}})
    code = "from evaluation.command_hints import *; print(snakemake('prefill'))"
    (paper.folder / "asks.smk").write_text(
        f'include: "{ROOT}/workflow/Snakefile"\n'
        "from evaluation.command_hints import snakemake as advice\n"
        "print(advice('prefill'))\n"
        f"import subprocess; subprocess.run([sys.executable, '-c', {code!r}])\n"
    )
    line = "-m snakemake one -n -s asks.smk --cores 3 --configfile config.yaml --config cache=other"
    done = run_python(line.split(), paper.folder, EVALUATION_CONFIG=str(paper.config))
    wanted = "snakemake prefill --cores 3 --snakefile asks.smk --configfile config.yaml --config cache=other"
    assert done.stdout.count(wanted) == 2, done.stdout + done.stderr


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "evaluation").mkdir(parents=True)
    (folder / "evaluation" / "protocol.py").write_text("X = 1\n")
    (folder / "config.yaml").write_text("a: 1\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one", "--date", "2026-03-01T12:00:00")
    return folder


def test_a_file_and_its_changes(repository: Path) -> None:
    commit = git(repository, "rev-parse", "--short=12", "HEAD")
    known = commit_of(repository / "config.yaml")
    assert re.fullmatch(rf"{commit} of 20..-..-..", known or "")
    (repository / "config.yaml").write_text("a: 2\n")
    assert commit_of(repository / "config.yaml") == f"{known}, modified since"
    assert code_commit(repository) == known  # the code is as it was
    (repository / "evaluation" / "protocol.py").write_text("X = 2\n")
    assert code_commit(repository) == f"{known}, modified since"


def test_what_is_under_no_version_control(repository: Path, tmp_path: Path) -> None:
    """Also a file that merely lies in a repository, and code that was installed into one."""
    (repository / "other.yaml").write_text("b: 1\n")
    (tmp_path / "lone.yaml").write_text("b: 1\n")
    for path in (repository / "other.yaml", tmp_path / "lone.yaml", tmp_path / "none.yaml"):
        assert commit_of(path) is None
    (repository / "site-packages").mkdir()
    assert code_commit(repository / "site-packages") is None


def test_a_run_says_where_its_configuration_comes_from(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, "")
    config = next(iter(make_plans(tmp_path).values())).config
    content = config.model_dump(mode="json", exclude_defaults=True)
    files = [repository / "config.yaml"]
    made, path = run_config(content, True, files, [])
    keep_config(made, files)
    origin = f"config.yaml at {commit_of(repository / 'config.yaml')}"
    assert origin_of(made) == origin
    assert validate_config(content, "again", files) == made
    assert write_effective(made).absolute() == path
    assert origin_of(made) == origin  # written again without a word of it, it stays
    keep_config(run_config(content, True, [path], [])[0], [path])  # as the watcher does
    assert origin_of(made) == origin

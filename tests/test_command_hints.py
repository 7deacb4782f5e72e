"""Commands in messages keep the configuration that the process was started with."""

from pathlib import Path

import pytest

from evaluation.command_hints import STARTED_WITH, evaluation, note_command, note_run, snakemake
from tests.histories.warm import run_python
from tests.workflow.paper import ROOT, Paper
from tests.workflow.world import World, build_world


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for name in (STARTED_WITH, "EVALUATION_CONFIG", "SNAKEMAKE_PROFILE"):
        monkeypatch.setenv(name, "")  # put back at the end, whatever the test does
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ("config/config.yaml", None),
        ("minimal.yaml", "minimal.yaml"),
        ("my run.yaml", "'my run.yaml'"),
    ],
)
def test_of_a_command_by_hand(config: str, shown: str | None) -> None:
    note_command(Path(config))
    run, hand = snakemake("prefill"), evaluation("doctor")
    given = (f" --configfile {shown}", f" --config {shown}") if shown else ("", "")
    assert run == f"snakemake prefill --profile slurm_profile{given[0]}"
    assert hand == f"python -m evaluation doctor{given[1]}"


def test_away_from_the_workflow_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    note_command(Path("minimal.yaml"))
    place = f"--snakefile {ROOT}/workflow/Snakefile --configfile minimal.yaml"
    assert snakemake("prefill") == f"snakemake prefill --profile {ROOT}/slurm_profile {place}"


MERGED = "python -m evaluation doctor --config results/.config/0/run.yaml"
RUNS = [
    ("all --profile slurm_profile", "--profile slurm_profile", "python -m evaluation doctor"),
    ("-n --profile=slurm_profile stage1", "--profile slurm_profile", "python -m evaluation doctor"),
    (
        "stage1 -c4 --forcerun score_stage1 --configfile a.yaml",
        "--cores 4 --configfile a.yaml",
        "python -m evaluation doctor --config a.yaml",
    ),
    ("--jobs 8 --executor slurm -s x/Snakefile", "--executor slurm --jobs 8 --snakefile x/Snakefile", None),
    ("--cores --configfile a.yaml b.yaml", "--cores all --configfile a.yaml b.yaml", MERGED),
    (
        "-j 2 -d elsewhere --configfile a.yaml --config cache=/x results=/y",
        "--jobs 2 --directory elsewhere --configfile a.yaml --config cache=/x results=/y",
        MERGED,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "kept", "hand"), RUNS, ids=[case[0] for case in RUNS])
def test_of_a_run(given: str, kept: str, hand: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    note_run(given.split())
    monkeypatch.setenv("EVALUATION_CONFIG", "results/.config/0/run.yaml")
    note_command(Path("results/.config/0/run.yaml"))  # a job of it
    assert snakemake("prefill") == f"snakemake prefill {kept}"
    assert evaluation("doctor") == (hand or "python -m evaluation doctor")


def test_a_profile_of_the_shell_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "leonardo")
    assert snakemake("prefill") == "snakemake prefill"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build_world(tmp_path_factory.mktemp("world"))


def test_what_doctor_advises_plans_what_it_looked_at(world: World) -> None:
    """In another folder than the workflow's, and with another configuration than the default one."""
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

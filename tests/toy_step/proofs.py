"""Proofs that everything knows a step that was added to a copy of the package; see test_toy_step.py.

python -m tests.toy_step.proofs CONFIG
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import evaluation
from evaluation.checkpoints.subjects import bridge_subject, step_subject
from evaluation.commands.parser import build_parser
from evaluation.dependencies.outdated import Outdated
from evaluation.dependencies.steps import STEP_DELTAS
from evaluation.errors import ResultsError
from evaluation.orchestration.hooks import _recorded_errors
from evaluation.reporting.status import stage_status, status_table
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages
from evaluation.watching.work import Work


def proofs(config: Path) -> None:
    plans = plan_stages(load_config(config))
    plan = plans["second"]
    subject = step_subject(plan, 10)
    assert planned(config) >= {"toyjudge_second", "deltas_second", "tables_second", "front_page"}
    outdated = Outdated(plans)
    assert [outdated(name, subject) for name in ("collect", "toyjudge", STEP_DELTAS)] == [
        False,
        True,
        True,
    ]
    found = stage_status(plan, (10,), outdated)
    assert found["subjects"]["10"]["files"]["toyjudge"] == "missing"
    work = Work(
        config=plan.config,
        plans=plans,
        ready=(subject,),
        states={},
        evaluated={},
        skipped={},
        seen={},
    )
    targets = [Path(path).stem for path in work.targets]
    assert set(targets) >= {"collect", "toyjudge", STEP_DELTAS}
    assert targets.index("collect") < targets.index("toyjudge") < targets.index(STEP_DELTAS)
    with pytest.raises(ResultsError, match="no judgements yet"):
        by_hand(config, "deltas --stage second --step 10")
    for which in ("--step 10 20", "--bridge"):
        by_hand(config, f"toyjudge --stage second {which}")
    by_hand(config, "deltas --stage second --step 10 20")
    assert list(_recorded_errors(plan, plans)) == [
        "second step 20: judgements: step 20 is above judgement"
    ]
    outdated = Outdated(plans)
    assert not any(outdated(name, subject) for name in ("toyjudge", STEP_DELTAS))
    assert not outdated("toyjudge", bridge_subject(plan, plans))
    found = stage_status(plan, (10,), outdated)
    assert "toyjudge" in status_table({"second": found}).splitlines()[0].split()
    assert found["subjects"]["10"]["files"]["toyjudge"] == "done"
    damaged(config, subject.folder / "toyjudge.json")


def damaged(config: Path, file: Path) -> None:
    """What reads it names the command that mends it."""
    file.write_text("{}")
    with pytest.raises(ResultsError, match="judgements of second, step 10, are damaged") as caught:
        by_hand(config, "tables --stage second")
    (typed,) = re.findall(r"run `python -m evaluation (.*)`", str(caught.value))
    assert typed == f"toyjudge --config {config} --stage second --step 10"
    by_hand(config, typed.replace(f"--config {config}", ""))
    by_hand(config, "tables --stage second")


def by_hand(config: Path, line: str) -> int:
    options = build_parser().parse_args([*shlex.split(line), "--config", str(config)])
    code: int = options.run(options)
    return code


def planned(config: Path) -> set[str]:
    """The rules that a dry run of the copy's workflow has jobs of."""
    snakefile = Path(evaluation.__file__).parents[1] / "workflow" / "Snakefile"
    command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1", "-s", str(snakefile)]
    command += ["--configfile", str(config)]
    done = subprocess.run(command, cwd=config.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return set(re.findall(r"(?m)^(\w+) +\d+$", done.stdout + done.stderr))


if __name__ == "__main__":
    assert not str(evaluation.__file__).startswith(str(Path(__file__).parents[2])), "not the copy"
    assert yaml.safe_load(Path(sys.argv[1]).read_text())["stages"]
    proofs(Path(sys.argv[1]))

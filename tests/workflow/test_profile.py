"""What the shipped profile asks Slurm for, whatever the stages are called; and the one without Slurm."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string

from tests.histories.warm import run_python, well
from tests.workflow.paper import ROOT, Paper
from tests.workflow.world import World

SHIPPED = (ROOT / "slurm_profile" / "config.yaml").read_text()
BRIDGED = {"suites": ["chat"], "bridge": {"stage": "prefill2"}}
STAGES: dict[str, dict[str, Any]] = {"prefill2": {}, "ablation_A": BRIDGED}
PREFILL = {"prefill_tokenizer", "prefill_slice", "prefill_probes"}
SINGLE = {"score_prefill2", "score_ablation_A", "score_ablation_A_bridge"}
SHARED = {"score_prefill2_from_10", "score_ablation_A_from_10"}


class Resources(dict[str, Any]):
    """A job's resources as the executor reads them, by key or as an attribute."""

    __getattr__ = dict.__getitem__


def submitted(folder: Path, profile: str, *options: str, **top: Any) -> dict[str, str]:
    """The sbatch command of each rule that Slurm would get, from a dry run; `top` is configured."""
    paper = Paper(folder / "paper", STAGES, top)
    (paper.folder / "profile").mkdir()
    (paper.folder / "profile" / "config.yaml").write_text(profile)
    done = well(paper.snakemake("-n", "--verbose", "--profile", "profile", *options))
    told = re.findall(r"(?ms)^rule (\w+):$.*?^ +resources: (.*?)$", done.stdout)
    return {rule: sbatch(resources) for rule, resources in told}


def sbatch(resources: str) -> str:
    pairs = (pair.split("=", 1) for pair in resources.split(", "))
    given = Resources({key: int(v) if v.isdigit() else v for key, v in pairs})
    job: Any = SimpleNamespace(resources=given, threads=8)
    told = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "account", "workdir"), "")
    told["partition"] = f"-p {given.slurm_partition}"
    return get_submit_command(job, told) + set_gres_string(job)


def uncommented(key: str) -> Callable[[str], str]:
    """The profile with a block of its comment lines taken as they stand."""

    def change(profile: str) -> str:
        head, block = profile.split(f"  # {key}:", 1)
        return f"{head}  {key}:" + block.replace("\n  #   ", "\n    ")

    return change


def other_style(profile: str) -> str:
    changed = profile.replace('gres: "gpu:1"', "# gres", 1).replace("# gpu: 1", "gpu: 1")
    return changed.replace("# gpu_model", "gpu_model")


CASES: dict[str, tuple[Callable[[str], str], set[str], str]] = {
    "as shipped": (str, SINGLE, "--gres=gpu:1"),
    "typed": (lambda text: text.replace('"gpu:1"', '"gpu:a100:1"'), SINGLE, "--gres=gpu:a100:1"),
    "the other style": (other_style, SINGLE, "--gpus=a100:1"),
    "several in a job": (uncommented("shared_scoring"), {"score_ablation_A_bridge", *SHARED}, "--gres=gpu:1"),
}  # fmt: skip


def scored(calls: dict[str, str]) -> set[str]:
    return {rule for rule in calls if rule.startswith("score_")}


@pytest.mark.parametrize("name", CASES)
def test_scoring_gets_a_gpu_and_prefill_none(tmp_path: Path, name: str) -> None:
    change, scoring, gpu = CASES[name]
    calls = submitted(tmp_path, change(SHIPPED))
    assert calls.keys() >= PREFILL
    assert scored(calls) == scoring
    for rule in PREFILL:
        assert "-p serial " in calls[rule]
        assert "--mem 16000 " in calls[rule]
        assert not re.search("--gres|--gpus", calls[rule])
    for rule in scoring - SHARED:
        assert "-p gpu " in calls[rule]
        assert "--mem 64000 " in calls[rule]
        assert f" {gpu}" in calls[rule]
    for rule in scoring & SHARED:
        assert "--mem 256000 " in calls[rule]
        assert "--cpus-per-task=32 " in calls[rule]
        assert "--ntasks" not in calls[rule]
        assert calls[rule].endswith(" --gres=gpu:4")


def test_what_is_set_for_one_stage_goes_before_what_is_set_for_all(tmp_path: Path) -> None:
    """Also in `default-resources`, for who sets all there."""
    both = SHIPPED.replace("  tasks: 1\n", "  tasks: 1\n  checkpoints: 2\n")
    own = "set-resources:\n  score_ablation_A:\n    checkpoints: 1\n"
    calls = submitted(tmp_path, both.replace("set-resources:\n", own))
    expected = {"score_prefill2_from_10", "score_ablation_A", "score_ablation_A_bridge"}
    assert scored(calls) == expected


WAITS = """
echo "$CUDA_VISIBLE_DEVICES" > WORLD/gpu_of_$LIGHTEVAL_STEP
for _ in $(seq 300); do [ $(ls WORLD/gpu_of_* | wc -l) = 2 ] && break; sleep 0.1; done
false
"""
"""A stage's command that writes its GPUs down, and waits until that of the other step runs as well."""


def test_without_slurm_jobs_at_once_have_different_gpus(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(world.folder))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    world.change_stage("stage1", command=WAITS.replace("WORLD", str(world.folder)))
    how = [
        "-s",
        f"{ROOT}/workflow/Snakefile",
        "--profile",
        f"{ROOT}/profiles/no_slurm",
        "--cores",
        "16",
    ]
    run_python(["-m", "snakemake", "stage1", *how, "--configfile", str(world.config)], world.folder)
    gpus = [(world.folder / f"gpu_of_{step}").read_text() for step in (10, 20)]
    assert sorted(gpus) == ["0\n", "1\n"]


def test_every_profile_is_tried() -> None:
    profiles = {path.parent.name for path in ROOT.glob("profiles/*/config.yaml")}
    assert profiles == {"slurm", "no_slurm"}
    assert (ROOT / "profiles/slurm/config.yaml").read_text() == SHIPPED

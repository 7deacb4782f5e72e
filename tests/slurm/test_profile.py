"""The profile as shipped, on a real cluster: prefill, stages, one target, one GPU, no connection."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.slurm import cluster, layout
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import BOTH, PROMPT_SNAKEMAKE, STEP, Run, shared_jobs
from tests.workflow.world import World

GPU = 'gres: "gpu:1"'
STYLES = {"gres": {}, "gpus": {GPU: 'gpu: 1\n  gpu_model: "a100"'}}


@pytest.mark.parametrize("style", STYLES)
def test_one_gpu_on_one_node(make_run: MakeRun, style: str) -> None:
    """Either style gives one GPU and 8 CPUs of one node, and the job runs to its end."""
    run = make_run(profile=STYLES[style])
    run.score()
    assert run.wait() == 0, run.log
    asked = cluster.slurm("scontrol", "show", "job", run.job())
    assert "NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=8" in asked
    assert ("gpu:a100:1" in asked) == (style == "gpus")
    assert "gpu:1" in asked.replace("a100:", "").replace("gres:", "")


def test_several_checkpoints_share_a_job(make_run: MakeRun, undisturbed: Path) -> None:
    """It gets all GPUs of a node, and uses as many as it has checkpoints."""
    run = make_run(profile=shared_jobs(2))
    run.score(steps=BOTH, environment={"OMP_NUM_THREADS": str(torch.get_num_threads())})
    assert run.wait() == 0, run.log
    run.assert_results(undisturbed)
    lines = cluster.slurm("squeue", "--states=all", "-h", "-o", "%i %k %Z").splitlines()
    (job,) = (line.split()[0] for line in lines if line.endswith(f" {run.folder}"))
    assert f"{job} rule_score_stage1_from_10 {run.folder}" in lines
    assert "gres:gpu:4" in cluster.slurm("scontrol", "show", "job", job)
    log = run.results / "stage1" / "eval_logs" / "slurm" / "stage1_from_10.log"
    assert "step 10: begun on GPU 0" in log.read_text()
    assert "step 20: begun on GPU 1" in log.read_text()


def test_a_new_users_path(slurm: None, world: World, tmp_path: Path) -> None:
    """`prefill`, one step's target and both stages, with nothing edited."""
    folder = tmp_path / "user"
    run = Run(world, folder, folder / "results", program=PROMPT_SNAKEMAKE)
    run.start("prefill")
    assert run.wait() == 0, run.log
    run.start(str(run.tier(20)))
    assert run.wait() == 0, run.log
    assert run.tier(20).is_file()
    assert not run.tier(10).exists()
    run.start("stage1", "stage2")
    assert run.wait(400) == 0, run.log
    stage2 = run.results / "stage2"
    assert (stage2 / "bridge_deltas.csv").is_file()
    assert (stage2 / "report.html").is_file()
    logs = {path.name for path in (stage2 / "eval_logs" / "slurm").glob("*.log")}
    assert logs == {"stage2_step_5.log", "stage2_step_15.log", "stage2_bridge.log"}
    run.assert_clean()


HIDDEN = """
import contextlib, socket, urllib.request
with contextlib.suppress(Exception):
    urllib.request.urlopen("http://{address}:9/", timeout=2)
with contextlib.suppress(Exception):
    socket.create_connection(("2001:db8::1", 443), timeout=2)
"""


def unroutable() -> int:
    """Packets that found no route in the GPU nodes' namespace, IPv4 and IPv6."""
    inside = ["nsenter", f"--net=/run/netns/{layout.NETNS}", "cat"]
    v4 = cluster.slurm(*inside, "/proc/net/snmp").splitlines()
    names, values = (line.split()[1:] for line in v4 if line.startswith("Ip:"))
    v6 = dict(line.split() for line in cluster.slurm(*inside, "/proc/net/snmp6").splitlines())
    return int(dict(zip(names, values, strict=True))["OutNoRoutes"]) + int(v6["Ip6OutNoRoutes"])


def attempts(work: Callable[[], None]) -> int:
    before = unroutable()
    work()
    return unroutable() - before


def run_on(partition: str, program: str) -> int:
    """Exit code of a Python program as a Slurm job."""
    command = ["sbatch", "--wait", "-p", partition, "-o", "/dev/null", "--wrap"]
    return subprocess.run([*command, f"python3 -c '{program}'"], capture_output=True).returncode


def test_scoring_attempts_no_connection(make_run: MakeRun) -> None:
    run = make_run()

    def score() -> None:
        run.score()
        assert run.wait() == 0, run.log

    assert attempts(score) == 0
    assert run.tier(STEP).is_file()


def test_an_attempt_that_hides_its_error_is_counted(slurm: None) -> None:
    program = HIDDEN.format(address=layout.OUTSIDE_IP).replace("'", '"')

    def hide() -> None:
        assert run_on("gpu", program) == 0

    assert attempts(hide) >= 2

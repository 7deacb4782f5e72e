"""The profile as shipped, on a real cluster: prefill, stages, one target, one GPU."""

from pathlib import Path

from tests.slurm import cluster
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import BOTH


def test_several_checkpoints_share_a_job(make_run: MakeRun, undisturbed: Path) -> None:
    """With the profile's lines for that uncommented: it gets all GPUs of a node."""
    lines = (
        "score:",
        '  gres: "gpu:4"',
        "  tasks_per_gpu: 0",
        "  cpus_per_task: 32",
        "  mem_mb: 256000",
    )
    run = make_run(
        settings={"scoring": {"checkpoints_per_job": 2}},
        profile={f"# {line}": line for line in lines},
    )
    run.score(*BOTH)
    run.finish(undisturbed)
    (job,) = run.jobs("10_20")
    assert "gres:gpu:4" in cluster.slurm("scontrol", "show", "job", job)


def test_a_new_users_path(make_run: MakeRun, tmp_path: Path) -> None:
    """`prefill`, one step's target and both stages, with nothing edited."""
    run = make_run(settings={"cache": str(tmp_path / "cache")})
    run.end_well("prefill")
    run.end_well(str(run.tier(20)))
    assert run.tier(20).is_file()
    assert not run.tier(10).exists()
    asked = cluster.slurm("scontrol", "show", "job", run.job(20))
    assert "NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=8" in asked
    run.end_well("stage1", "stage2")
    assert (run.results / "stage2/report.html").is_file()
    assert list(run.results.rglob("*.tmp")) == []

"""The profile as shipped, on a real cluster: prefill, a stage, one step's target."""

from pathlib import Path

from tests.slurm.runs import PROMPT_SNAKEMAKE, Run
from tests.workflow.world import World


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

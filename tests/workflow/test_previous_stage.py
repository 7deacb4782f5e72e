"""A stage made alone makes no results of its bridge's stage; a run of both has the results of both."""

from tests.histories.warm import well
from tests.workflow.world import World


def nothing_is_to_be_done(world: World, *targets: str) -> bool:
    done = well(world.snakemake(*targets))
    return "Nothing to be done" in done.stdout + done.stderr


def test_a_run_of_both_stages_makes_tables_once(world: World) -> None:
    world.make("stage2")
    collected = world.results("stage1", "by_checkpoint", "step_20", ".made", "collect.json")
    assert not collected.exists()  # its scores are those of the bridge
    assert nothing_is_to_be_done(world, "stage2")
    tables = world.results("stage2", ".made", "tables.json")
    before = tables.read_text()
    well(world.snakemake())
    assert collected.exists()
    assert tables.read_text() != before
    assert nothing_is_to_be_done(world)
    assert nothing_is_to_be_done(world, "stage2")

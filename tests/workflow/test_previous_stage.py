"""A stage made alone makes no results of its bridge's stage; a run of both has the results of both.

It has them at once, also as a module of another workflow, and where the other stage's jobs fail.
"""

import pytest

from evaluation.checkpoints.contents import Contents
from evaluation.checkpoints.format import open_checkpoint
from evaluation.store import ScoreStore
from tests.histories.warm import well
from tests.workflow.world import REPORTS, ROOT, World, jobs

MODULE = """
rule everything:
    input:
        "shown/stage2.html",
        "results/stage1/summary.csv",

rule shown:
    input:
        "results/{stage}/report.html",
    output:
        "shown/{stage}.html",
    shell:
        "cp {input} {output}"

module ev:
    snakefile:
        "ROOT/workflow/Snakefile"
    config:
        config

use rule * from ev as ev_*
"""


@pytest.fixture
def quick(world: World) -> World:
    """Its second stage has no probes, which take seconds to grade."""
    world.change_stage("stage2", suites=["base"])
    return world


@pytest.fixture
def module(quick: World) -> str:
    """A workflow that has ours as a module and reads pages of it; it looks for results where it is."""
    quick.change(results="results")
    snakefile = quick.folder / "Snakefile"
    snakefile.write_text(MODULE.replace("ROOT", str(ROOT)))
    return str(snakefile)


def nothing_is_to_be_done(world: World, *targets: str, **how: str) -> bool:
    done = well(world.snakemake(*targets, snakefile=how.get("snakefile", "workflow/Snakefile")))
    return jobs(done) <= REPORTS


def test_a_run_of_a_module_makes_tables_once(quick: World, module: str) -> None:
    well(quick.snakemake("ev_prefill", snakefile=module))
    well(quick.snakemake("everything", snakefile=module))
    assert nothing_is_to_be_done(quick, "everything", snakefile=module)


def test_a_stage_is_shown_though_jobs_of_its_bridges_stage_fail(quick: World) -> None:
    """A job for a step of stage 1 fails without a record, as on a node that is lost."""
    plan = quick.plans["stage1"]
    identity = Contents().identity(open_checkpoint(plan.checkpoint(10)))
    in_its_way = quick.folder / ScoreStore(plan.scores, identity).folder
    in_its_way.parent.mkdir(parents=True)
    in_its_way.touch()
    done = quick.snakemake("--keep-going")
    assert done.returncode == 1, done.stdout + done.stderr
    shown = [quick.results("stage2", "summary.csv"), quick.results("report.html")]
    assert [path.name for path in shown if not path.exists()] == []
    in_its_way.unlink()
    well(quick.snakemake())
    assert nothing_is_to_be_done(quick)

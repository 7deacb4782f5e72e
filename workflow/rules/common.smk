# All functions of the workflow. Whatever is longer than a few lines lives in the package.
import re
import shlex
import sys
from itertools import chain
from pathlib import Path

ROOT = Path(workflow.basedir).parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from snakemake.exceptions import WorkflowError
from snakemake.io import sourcecache_entry

from evaluation import protocol
from evaluation.checkpoints.frozen import run_config
from evaluation.checkpoints.subjects import bridge_checkpoint, stage_steps
from evaluation.errors import EvaluationError
from evaluation.settings.config import NAME
from evaluation.settings.plan import plan_stages
from evaluation.slurm import guard_run
from evaluation.store import fingerprint


def or_stop(function, *arguments):
    """Calls a function of the package; its errors end the run as one sentence."""
    try:
        return function(*arguments)
    except EvaluationError as error:
        raise WorkflowError(str(error)) from None


CONFIG, CONFIG_FILE = or_stop(run_config, config, workflow.is_main_process)
PLANS = or_stop(plan_stages, CONFIG)

# Which file and which Python must not cause a rerun, as they change no result: both reach the
# jobs by the prefix of their shell, which Snakemake does not compare.
PYTHON = (
    "python"
    if workflow.deployment_settings.deployment_method
    else shlex.quote(sys.executable)
)
shell.prefix(f"""set -euo pipefail
export EVALUATION_CONFIG={shlex.quote(str(CONFIG_FILE))}
evaluation() ( export PYTHONPATH={shlex.quote(str(ROOT))}; exec {PYTHON} -m evaluation "$@" )
logged() ( trap '' TERM INT; exec tee "$1" )
""")

FRONT_PAGE = f"{CONFIG.results}/report.html"

TIER_FILES = {
    "tier2": ("tier2_ppl.json", "tier2_ppl_blocks.parquet"),
    "tier3": ("tier3_cf.json", "tier3_cf_candidates.parquet"),
    "tier4": ("tier4_sft_native.json", "tier4_sft_native_generations.jsonl"),
}


def tier_files(plan, folder):
    """All files that scoring one checkpoint of a stage writes."""
    names = [name for tier in plan.tiers for name in TIER_FILES[tier]]
    if plan.stage.command:
        names = [name for name in names if not name.endswith((".parquet", ".jsonl"))]
    return [f"{folder}/{name}" for name in names]


def prefilled(plan):
    """The caches that scoring a stage reads; a meta.json is written last."""
    folders = [plan.tokenizer_folder]
    folders += [plan.slice_folder(name) for name in plan.suite.slices]
    folders += [plan.task_folder(name) for name in plan.suite.tasks]
    folders += [plan.probes_folder] if plan.suite.probes else []
    return [f"{folder}/meta.json" for folder in folders]


def check_file(plan):
    """What a stage's check writes; beside Snakemake's lock, as other Snakemakes have their own."""
    return f".snakemake/checked/{fingerprint(str(plan.results))}/{plan.name}"


def forget_checks():
    """A run that failed is checked anew when it is started again."""
    for plan in PLANS.values():
        Path(check_file(plan)).unlink(missing_ok=True)


def caches_checked(plan, caches, results):
    """The caches that scoring reads; where some of its results are missing, after the check.

    The check stands in place of the tokenizer, which it depends on, and is recorded under its name:
    Snakemake would else score again what, once scored, depends on a check no more.
    """
    if all(Path(file).exists() for file in chain(caches, results)):
        return caches
    return [sourcecache_entry(check_file(plan), caches[0]), *caches[1:]]


def find_checkpoint(path):
    """A file that every writing of a checkpoint renews; None if there is no checkpoint."""
    for name in ("model_config.json", "config.yaml", "config.json"):
        if (path / name).is_file():
            return str(path / name)
    return None


def checkpoint_file(path):
    found = find_checkpoint(path)
    if found:
        return found
    raise WorkflowError(
        f"{path}: no checkpoint there (no model_config.json, config.yaml or config.json); "
        "correct `checkpoints` or `steps` of the stage, or wait until training has saved it"
    )


def steps_of(plan):
    return or_stop(stage_steps, plan)


def checkpoints_per_job(plan):
    """How many the profile puts into one job: the resource `checkpoints` of the scoring rule."""
    given = resources_of(f"score_{plan.name}")
    count = given["checkpoints"].raw if "checkpoints" in given else 1
    if isinstance(count, int) and count >= 1:
        return count
    raise WorkflowError(
        f"set-resources: score_{plan.name}: checkpoints is {count!r}; give a whole number from 1 on"
    )


def shared_jobs():
    """Each stage with the runs of steps that one job scores together.

    Cut from the first step on, so that later steps change only the last run. A run with a
    checkpoint that is not there yet is left to the rule of single steps.
    """
    for plan in PLANS.values():
        size, steps = checkpoints_per_job(plan), plan.stage.steps
        if size == 1 or not isinstance(steps, tuple):
            continue
        for start in range(0, len(steps), size):
            run = steps[start : start + size]
            paths = map(plan.checkpoint, run) if workflow.is_main_process else []
            if all(map(find_checkpoint, paths)):
                yield plan, run


def resources_of(rule):
    """What the profile or the command line sets for a rule."""
    return workflow.resource_settings.overwrite_resources.get(rule, {})


def bridge_of(plan):
    return or_stop(bridge_checkpoint, plan, PLANS)


def bridge_origin(plan):
    """The bridge's results in its own stage: scored there first, so never by two jobs at once."""
    bridge = plan.stage.bridge
    origin = PLANS.get(bridge.stage)
    if origin is None or origin.stage.command or plan.stage.command:
        return []
    step = bridge_of(plan).step
    if step not in steps_of(origin):
        return []
    return tier_files(origin, f"{origin.results}/by_checkpoint/step_{step}")


def step_files(plan):
    """All that a stage's tables are made of."""
    files = []
    for step in steps_of(plan):
        folder = f"{plan.results}/by_checkpoint/step_{step}"
        files += tier_files(plan, folder)
        files += [f"{folder}/bridge_deltas.json"] if plan.stage.bridge else []
    return files + (tier_files(plan, plan.bridge_folder) if plan.stage.bridge else [])


def bridge_files(plan):
    names = ("bridge_deltas.csv", "bridge_deltas.json", "recommendation.json")
    return [f"{plan.results}/{name}" for name in names]


def figure_files(plan):
    """SVG files by kind and tier: curves of every tier, forest plots where there is a bridge."""
    kinds = ("curves", "forest") if plan.stage.bridge else ("curves",)
    pairs = [(kind, tier) for tier in plan.tiers for kind in kinds]
    return {pair: f"{plan.results}/figures/{pair[1]}_{pair[0]}.svg" for pair in pairs}


def stage_files(plan):
    """What the target of a stage asks for."""
    tables = [f"{plan.results}/summary.csv", f"{plan.results}/report.html"]
    return [*tables, *figure_files(plan).values()]


def tell(is_done):
    """Ends a run with the recommendation of every stage in it, or with what failed."""
    from evaluation.reporting.ending import ending, failing

    rules = {job.rule.name for job in workflow.dag.jobs}
    kind = "tables" if is_done else "score"
    plans = [
        plan
        for plan in PLANS.values()
        if any(f"{rule}_".startswith(f"{kind}_{plan.name}_") for rule in rules)
    ]
    text = or_stop(ending if is_done else failing, plans)
    if text:
        print(f"\n{text}\n", file=sys.stderr, flush=True)


def owner(wildcards, kind):
    """A stage whose cache holds this item: `setup` is the cache's folder name."""
    for plan in PLANS.values():
        items = plan.suite.slices if kind == "slice" else plan.suite.tasks
        if plan.cache.name == wildcards.setup and (
            kind == "tokenizer" or wildcards.item in items
        ):
            return plan
    raise WorkflowError(
        f"no stage has a {kind} {wildcards}; see `suites` of the stages"
    )


def definition(wildcards, kind):
    """Changes when an item's cache must be made anew."""
    plan = owner(wildcards, kind)
    items = plan.suite.slices if kind == "slice" else plan.suite.tasks
    return fingerprint(items[wildcards.item].model_dump())


def suite_fingerprint(plan):
    return fingerprint(
        [plan.suite.model_dump(), plan.config.scoring.dtype, plan.stage.command]
    )

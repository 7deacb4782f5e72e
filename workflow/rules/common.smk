# Settings of a run, and what the rules ask of them. Whatever is longer lives in the package.
import re
import shlex

from snakemake.resources import Resources

from evaluation import protocol
from evaluation.checkpoints.discovery import configuration_file
from evaluation.orchestration.run_configuration import run_config
from evaluation.checkpoints.subjects import bridge_checkpoint, stage_steps
from evaluation.errors import EvaluationError
from evaluation.settings.config import NAME
from evaluation.settings.plan import plan_stages
from evaluation.settings.tiers import TIERS
from evaluation.orchestration.cluster import check_cluster
from evaluation.orchestration.slurm import guard_run
from evaluation.orchestration.targets import check_targets_first
from evaluation.files import fingerprint


def or_stop(function, *arguments):
    """Calls a function of the package; its errors end the run as one sentence."""
    try:
        return function(*arguments)
    except EvaluationError as error:
        raise WorkflowError(str(error)) from None


CONFIG, CONFIG_FILE = or_stop(
    run_config, config, workflow.is_main_process, workflow.configfiles
)
PLANS = or_stop(plan_stages, CONFIG)

# Which file and which Python must not cause a rerun, as they change no result: both reach the
# jobs by the prefix of their shell, which Snakemake does not compare.
PYTHON = (
    "python"
    if workflow.deployment_settings.deployment_method
    else shlex.quote(sys.executable)
)
PREFIX = f"""set -euo pipefail
export EVALUATION_CONFIG={shlex.quote(str(CONFIG_FILE))}
evaluation() ( export PYTHONPATH={shlex.quote(str(ROOT))}; exec {PYTHON} -m evaluation "$@" )
logged() ( trap '' TERM INT; exec tee "$1" )
"""
shell.prefix(PREFIX.replace("{", "{{").replace("}", "}}"))  # it is formatted once


def steps_of(plan):
    return or_stop(stage_steps, plan)


def bridge_of(plan):
    return or_stop(bridge_checkpoint, plan, PLANS)


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


def resources_of(rule):
    """What the profile or the command line sets for a scoring rule's jobs of several checkpoints."""
    given = workflow.resource_settings.overwrite_resources
    return Resources({**given.get("shared_scoring", {}), **given.get(rule, {})})


def checkpoints_per_job(plan):
    """How many the profile puts into one job: the resource `checkpoints`."""
    given = {
        **(workflow.resource_settings.default_resources or {}),
        **resources_of(f"score_{plan.name}"),
    }
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
            if all(map(configuration_file, paths)):
                yield plan, run


def tell(is_done):
    """Ends a run with the recommendation of every stage in it, or with what failed."""
    from evaluation.orchestration.messages import ending, failing

    rules = {job.rule.name for job in workflow.dag.jobs}
    kind = "tables" if is_done else "score"
    plans = [
        plan
        for plan in PLANS.values()
        if any(
            re.fullmatch(rf"{kind}_{re.escape(plan.name)}(_bridge|_from_\d+)?", rule)
            for rule in rules
        )
    ]
    text = or_stop(ending if is_done else failing, plans)
    if text:
        print(f"\n{text}\n", file=sys.stderr, flush=True)


def explain_missing_outputs(logs):
    """A job whose caches vanished ends "successfully" without output; this says what is gone."""
    files = {file for plan in PLANS.values() for file in prefilled(plan)}
    gone = sorted(file for file in files if not Path(file).exists())
    said = "".join(Path(log).read_text() for log in logs)
    if gone and "some output files are missing" in said:
        print(
            f"{len(gone)} prefilled files are gone, {gone[0]} among them. Jobs that need them end "
            "without their output files; `snakemake --profile slurm_profile prefill` makes them "
            "again.",
            file=sys.stderr,
        )

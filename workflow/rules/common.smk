# Settings of a run, and what the rules ask of them. Whatever is longer lives in the package.
import re
import shlex
from functools import partial


from snakemake.resources import Resources

from evaluation.dependencies.caches import stage_entries
from evaluation.orchestration.hooks import check_targets_first, end, start
from evaluation.orchestration.rule_inputs import RuleInputs
from evaluation.orchestration.score_rules import for_spread_model, score_rules
from evaluation.orchestration.stops import RunError, or_stop
from evaluation.orchestration.run_configuration import keep_config, run_config
from evaluation.results.stage_files import (
    FRONT_FILES,
    PAGE,
    SUMMARY_TABLE,
    stage_outputs,
)
from evaluation.settings.candidates import FOLDER, candidate_of, candidate_option
from evaluation.settings.names import NAME
from evaluation.settings.planning import plan_stages
from evaluation.settings.tiers import TIERS

CONFIG, CONFIG_FILE = or_stop(
    run_config, config, workflow.is_main_process, workflow.configfiles, sys.argv[1:]
)
PLANS = or_stop(plan_stages, CONFIG)
INPUTS = RuleInputs(PLANS, workflow)
keep_configuration = partial(or_stop, keep_config, CONFIG, workflow.configfiles)

# What the shell of a job begins with: it has the Python, the package and the configuration of the run.
PYTHON = "python" if workflow.deployment_settings.deployment_method else sys.executable
JOB = shlex.join(
    [f"{ROOT}/workflow/scripts/job.sh", str(ROOT), PYTHON, str(CONFIG_FILE)]
)


def job(command):
    """A shell command behind that. `shell.prefix` would also be that of a workflow which has these
    rules as a module."""
    return ". {} && {}".format(JOB.replace("{", "{{").replace("}", "}}"), command)


def name_in_run(rule):
    """What a rule is called in the whole workflow, which may use these rules as a module; None if it
    does not use this one."""
    return workflow.modifier.avail_rulename(rule)


def resources_of(rule, like="shared_scoring"):
    """What the profile or the command line sets for a rule, over what it sets for another name: that
    of scoring rules' jobs of several checkpoints, if none is given."""
    given = workflow.resource_settings.overwrite_resources
    names = (like, rule, name_in_run(rule))
    return Resources({k: v for name in names for k, v in given.get(name, {}).items()})


def set_resources(rule, resources):
    """Have a rule's jobs get these, over what they have."""
    if name := name_in_run(rule):
        workflow.get_rule(name).resources.update(resources)


def spread_over_gpus(rule):
    """What a rule's jobs get where a checkpoint is spread over several GPUs: so many times the profile's."""
    own = resources_of(rule, like=rule)
    defaults = workflow.resource_settings.default_resources or {}
    raw = {name: resource.raw for name, resource in defaults.items()}
    gpus = CONFIG.scoring.gpus_per_checkpoint
    set_resources(rule, for_spread_model(raw, own, gpus))


def checkpoints_per_job(plan):
    """How many the profile puts into one job: the resource `checkpoints`."""
    given = {
        **(workflow.resource_settings.default_resources or {}),
        **resources_of(f"score_{plan.name}"),
    }
    count = given["checkpoints"].raw if "checkpoints" in given else 1
    if isinstance(count, int) and count >= 1:
        return count
    raise RunError(
        f"set-resources: score_{plan.name}: checkpoints is {count!r}; give a whole number from 1 on"
    )


# Which files the rules make.
FRONT_PAGE = f"{CONFIG.results}/{PAGE}"
CHECKPOINT = rf"by_checkpoint/(?:{FOLDER})|bridge"
"""Folders of a stage's results that hold a checkpoint's."""


def made(folder, step):
    """The record that a step leaves in the folder of its outputs; its key says whether it is outdated.

    Never removed: another run may be reading it, or its checkpoint may be deleted.
    """
    return update(f"{folder}/.made/{step}.json")


def prefilled(plan):
    """The records of all caches that scoring a stage reads."""
    return [str(entry.record) for entry in stage_entries(plan)]


def other_files(plan):
    """What a stage's tables are made with, beside the two that its target asks for."""
    names = [name for name in stage_outputs(plan) if name not in (SUMMARY_TABLE, PAGE)]
    return [f"{plan.results}/{name}" for name in names]


def stage_files(plan):
    """What the target of a stage asks for."""
    tables = [f"{plan.results}/{name}" for name in (SUMMARY_TABLE, PAGE)]
    return [*tables, *map(str, plan.figures.values())]


def result_files(plan):
    """Names of the files in a checkpoint's folder."""
    names = [path.name for path in plan.tier_files(plan.results)]
    return names if plan.stage.bridge is None else [*names, "bridge_deltas.json"]

# Settings of a run, and functions that the rules call. Longer code is in the package `evaluation`.
import re
import shlex
from functools import partial


from snakemake.resources import Resources

from evaluation.dependencies.caches import stage_entries
from evaluation.dependencies.places import place_of
from evaluation.dependencies.steps import STEPS
from evaluation.orchestration.hooks import check_targets_first, end, start
from evaluation.orchestration.internals import Internals, value_of
from evaluation.orchestration.rule_inputs import RuleInputs
from evaluation.orchestration.score_rules import score_rules
from evaluation.orchestration.stops import RunError, or_stop
from evaluation.orchestration.run_configuration import keep_config, run_config
from evaluation.results.stage_files import FRONT_FILES, PAGE, stage_outputs
from evaluation.results.comparison_file import COMPARISON_FILES
from evaluation.results.table import SUMMARY_TABLE
from evaluation.settings.names import NAME
from evaluation.settings.planning import plan_stages
from evaluation.settings.steps import RESULTS, step_of_results
from evaluation.settings.tiers import TIERS

CONFIG, CONFIG_FILE = or_stop(
    run_config, config, PART("is_main_process"), PART("configfiles")
)
PLANS = or_stop(plan_stages, CONFIG)
INPUTS = RuleInputs(PLANS, workflow)
keep_configuration = partial(or_stop, keep_config, CONFIG, PART("configfiles"))
make_by_default = Internals(workflow).make_by_default  # for Snakefiles of `init`

# The shell of every job begins with this: it sets the Python, the package and the run's configuration.
PYTHON = "python" if PART("deployment_settings.deployment_method") else sys.executable
JOB = shlex.join(
    [f"{ROOT}/workflow/scripts/job.sh", str(ROOT), PYTHON, str(CONFIG_FILE)]
)


def job(command):
    """Return a shell command that begins with JOB. `shell.prefix` would also apply to the rules of a
    workflow that uses these rules as a module."""
    return ". {} && {}".format(JOB.replace("{", "{{").replace("}", "}}"), command)


def name_in_run(rule):
    """Return a rule's name in the whole workflow, which may use these rules as a module; None if it does
    not use this rule."""
    return PART("modifier.avail_rulename")(rule)


def resources_of(rule, like="shared_scoring"):
    """Return the resources that the profile or command line sets for a rule. They override those set for
    the name `like`, by default that of jobs that score several checkpoints."""
    given = PART("resource_settings.overwrite_resources")
    names = (like, rule, name_in_run(rule))
    return Resources({k: v for name in names for k, v in given.get(name, {}).items()})


def set_resources(rule, resources):
    """Override resources of a rule's jobs."""
    if name := name_in_run(rule):
        PART("get_rule")(name).resources.update(resources)


def checkpoints_per_job(plan):
    """Return how many checkpoints one job scores: the resource `checkpoints` of the profile."""
    given = {
        **(PART("resource_settings.default_resources") or {}),
        **resources_of(f"score_{plan.name}"),
    }
    count = value_of(given["checkpoints"]) if "checkpoints" in given else 1
    if isinstance(count, int) and count >= 1:
        return count
    raise RunError(
        f"set-resources: score_{plan.name}: checkpoints is {count!r}; give a whole number from 1 on"
    )


# Which files the rules make.
CHECKPOINT = rf"by_checkpoint/(?:{RESULTS})|bridge"
"""Pattern of the folders, below a stage's results, that have the results of a checkpoint."""


def made(folder, step):
    """Return the record that a step writes next to its outputs; the record shows whether they are outdated.

    Snakemake never removes it: another run may be reading it, or its checkpoint may be deleted.
    """
    return update(f"{folder}/.made/{step}.json")


def prefilled(plan):
    """Return the records of all caches that scoring a stage reads."""
    return [str(entry.record) for entry in stage_entries(plan)]


def option_of(folder):
    """Return the option that names the checkpoint of a folder on the command line."""
    if folder == "bridge":
        return "--bridge"
    return f"--step {step_of_results(Path(folder))}"

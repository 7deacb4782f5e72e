# Which files the rules make and read.
from itertools import chain

from snakemake.io import sourcecache_entry

FRONT_PAGE = f"{CONFIG.results}/report.html"


def tier_files(plan, folder):
    """All files that scoring one checkpoint of a stage writes."""
    return [str(file) for file in plan.tier_files(Path(folder))]


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


def checkpoint_file(path):
    """A file that every writing of a checkpoint renews; stops if there is no checkpoint."""
    found = configuration_file(path)
    if found:
        return str(found)
    raise WorkflowError(
        f"{path}: no checkpoint there (no model_config.json, config.yaml or config.json); "
        "correct `checkpoints` or `steps` of the stage, or wait until training has saved it"
    )


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
    """SVG files by kind and tier."""
    return {pair: str(file) for pair, file in plan.figures.items()}


def stage_files(plan):
    """What the target of a stage asks for."""
    tables = [f"{plan.results}/summary.csv", f"{plan.results}/report.html"]
    return [*tables, *figure_files(plan).values()]

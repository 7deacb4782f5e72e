# Which files the rules make.
FRONT_PAGE = f"{CONFIG.results}/{PAGE}"
CHECKPOINT = r"by_checkpoint/step_\d+|bridge"
"""Folders of a stage's results that hold a checkpoint's."""


def made(folder, step):
    """The record that a step leaves in the folder of its outputs; its key says whether it is outdated.

    Never removed: another run may be reading it, or its checkpoint may be gone.
    """
    return update(f"{folder}/.made/{step}.json")


def prefilled(plan):
    """The records of all caches that scoring a stage reads."""
    return [str(entry.record) for entry in stage_entries(plan)]


def figure_files(plan):
    """SVG files by kind and tier."""
    return {pair: str(file) for pair, file in plan.figures.items()}


def other_files(plan):
    """What a stage's tables are made with, beside the two that its target asks for."""
    names = [name for name in stage_outputs(plan) if name not in (SUMMARY_TABLE, PAGE)]
    return [f"{plan.results}/{name}" for name in names]


def stage_files(plan):
    """What the target of a stage asks for."""
    tables = [f"{plan.results}/{name}" for name in (SUMMARY_TABLE, PAGE)]
    return [*tables, *figure_files(plan).values()]


def result_files(plan):
    """Names of the files in a checkpoint's folder."""
    names = [path.name for path in plan.tier_files(plan.results)]
    return names if plan.stage.bridge is None else [*names, "bridge_deltas.json"]

"""`doctor`: what would stop a scoring job, found before a GPU is requested.

Each check is a function that yields problems: a sentence that names what is wrong and the remedy.
"""

import argparse
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from evaluation.checkpoints.agreement import check_agreement, check_tokenizer_fits, other_end
from evaluation.checkpoints.completeness import check_complete
from evaluation.checkpoints.subjects import Subject, stage_subjects
from evaluation.commands import Commands, add_configured, add_json, chosen_plans, print_json
from evaluation.errors import CacheError, EvaluationError, printable_lines
from evaluation.flow.caches import CacheEntry, Caches, stage_entries
from evaluation.prefill.entries import check_entry, read_meta
from evaluation.settings.plan import StagePlan
from evaluation.settings.provided import ProviderTask
from evaluation.settings.tiers import TIERS

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
"""With these set, the libraries fail at once instead of waiting for a network."""

SHOWN = 5
"""Sentences that are shown of one check; `--json` has all."""

_LOW = 10e9
"""Free bytes below which the disk is a warning."""

Plans = Mapping[str, StagePlan]


class Problem(NamedTuple):
    """A sentence that ends with the remedy; a warning stops no job, or not every job."""

    sentence: str
    is_warning: bool = False


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `doctor`."""
    command = add_configured(
        commands, _doctor, "find what would stop a scoring job, and how to correct it", stage=False
    )
    add_json(command)
    command.add_argument("--gate", action="store_true", help="checkpoints and GPU only as warnings")


def _doctor(options: argparse.Namespace) -> int:
    """Print what would stop a scoring job; for a fault return 1, or raise an error with `--gate`."""
    os.environ.update(OFFLINE)
    from evaluation.settings.config import load_config
    from evaluation.settings.planning import plan_stages

    try:
        plans = plan_stages(load_config(options.config))
        chosen = chosen_plans(options, plans)
        problems = check_all(
            chosen, plans, only_warn=("checkpoints", "GPU") if options.gate else ()
        )
    except EvaluationError as error:
        problems = {"configuration": [Problem(str(error))]}
    faults = [name for name, own in problems.items() if not all(each.is_warning for each in own)]
    if options.json:
        rows = [
            {"check": name, "warning": each.is_warning, "sentence": each.sentence}
            for name, own in problems.items()
            for each in own
        ]
        print_json({"faults": faults, "checks": [*problems], "problems": rows})
    else:
        print("\n".join(_lines(problems)))
    if faults and options.gate:
        of_stage = f" of {options.stage}" if options.stage else ""
        raise EvaluationError(f"faults in {', '.join(faults)}; no job{of_stage} was submitted")
    return int(bool(faults))


def _lines(problems: Mapping[str, list[Problem]]) -> Iterator[str]:
    for name, own in problems.items():
        if not own:
            yield f"ok: {name}"
        for each in own[:SHOWN]:
            kind = "warning" if each.is_warning else "fault"
            yield f"{kind}: {name}: {printable_lines(each.sentence)}"
        if len(own) > SHOWN:
            yield f"{len(own) - SHOWN} more problems with {name}; --json lists them all"


def check_all(
    chosen: Plans, plans: Plans, only_warn: tuple[str, ...] = ()
) -> dict[str, list[Problem]]:
    """Return the problems of each check; `only_warn` names checks whose faults do not stop every job."""
    checks = {
        "configuration": _objectives(chosen),
        "caches": _caches(chosen),
        "answers": _answers(chosen),
        "checkpoints": _checkpoints(chosen, plans),
        "sandbox": _sandbox(chosen),
        "disk": _disk(chosen),
        "GPU": _gpu(chosen),
    }
    return {
        name: [Problem(text, is_warning or name in only_warn) for text, is_warning in check]
        for name, check in checks.items()
    }


def _objectives(plans: Plans) -> Iterator[Problem]:
    for plan in plans.values():
        if plan.stage.objective and plan.stage.bridge is None:
            yield Problem(
                f"stages.{plan.name}.objective: without a bridge nothing is compared with it; name a "
                f"`stage` or a `path` in stages.{plan.name}.bridge",
                is_warning=True,
            )


def _caches(plans: Plans) -> Iterator[Problem]:
    """Yield the caches that are missing, damaged or made from other data or settings."""
    caches = Caches()

    def check(entry: CacheEntry) -> None:
        check_entry(entry.folder, str(read_meta(entry.folder).get("definition")))
        if problem := caches.entry_problem(entry):
            raise CacheError(f"{problem}; run `snakemake prefill`")

    entries = chain.from_iterable(map(stage_entries, plans.values()))
    yield from _errors_of([partial(check, entry) for entry in entries])


def _answers(plans: Plans) -> Iterator[Problem]:
    """Yield what generating and verifying answers lacks: vLLM, a provider, right golds."""
    from evaluation.prefill.caches import check_cached_golds
    from evaluation.prefill.provided import provider_of
    from evaluation.scoring.vllm.engine import find_vllm

    checks: list[Callable[[], object]] = []
    for plan in plans.values():
        tasks = plan.suite.generation_tasks
        if tasks and plan.config.generation.engine == "vllm":
            checks.append(partial(find_vllm, plan.config.generation))
        for name, task in tasks.items():
            if isinstance(task, ProviderTask):
                checks.append(provider_of(plan, task).check)
            else:
                checks.append(partial(check_cached_golds, plan, name))
    yield from _errors_of(checks)


def _errors_of(checks: Iterable[Callable[[], object]]) -> Iterator[Problem]:
    """Yield the different errors of some checks."""
    sentences = dict[str, None]()
    for check in checks:
        try:
            check()
        except EvaluationError as error:
            sentences[str(error)] = None
    yield from map(Problem, sentences)


def _checkpoints(chosen: Plans, plans: Plans) -> Iterator[Problem]:
    """Yield the checkpoints to score that are incomplete, or were trained otherwise than their stage says."""
    subjects: list[Subject] = []
    for plan in chosen.values():
        try:
            subjects += stage_subjects(plan, plans)
        except EvaluationError as error:
            yield Problem(str(error))
    left = [
        subject for subject in subjects if subject.checkpoint.exists() or not _is_scored(subject)
    ]
    with ThreadPoolExecutor(8) as pool:  # a parallel file system is slow, but serves many at once
        yield from filter(None, pool.map(_checkpoint, left))


def _is_scored(subject: Subject) -> bool:
    return any((subject.folder / tier.summary_file).is_file() for tier in TIERS.values())


def _checkpoint(subject: Subject) -> Problem | None:
    plan = subject.plan
    try:
        checkpoint = subject.open()
        check_complete(checkpoint)
        if not plan.stage.command:  # an external program has its own requirements
            check_agreement(plan, checkpoint, is_bridge=subject.role == "bridge")
            check_tokenizer_fits(checkpoint, _vocabulary(plan))
            if told := other_end(plan, checkpoint):
                return Problem(f"{subject.label}: {told}", is_warning=True)
    except EvaluationError as error:
        return Problem(f"{subject.label}: {error}")
    except OSError as error:
        path = error.filename or subject.checkpoint
        return Problem(f"{subject.label}: {path}: {error.strerror}; make it readable")
    return None


def _vocabulary(plan: StagePlan) -> int:
    """Return the rows of the embedding that a stage's caches need; 0 where none is prefilled."""
    from evaluation.prefill.entries import read_meta

    needed = [0]
    for entry in stage_entries(plan)[1:]:
        try:
            needed.append(int(read_meta(entry.folder)["vocab_size_needed"]))
        except (EvaluationError, KeyError):  # reported by its own check
            continue
    return max(needed)


def _sandbox(plans: Plans) -> Iterator[Problem]:
    """Yield why programs in answers cannot run here; another machine may verify them."""
    from evaluation.verification.sandbox.run import describe_sandbox

    running = [plan for plan in plans.values() if plan.suite.runs_programs]
    kind = running[0].config.verification.sandbox if running else None
    if kind == "none":
        yield Problem("verification.sandbox is none: code of answers may do all that you may", True)
    elif kind:
        for problem in _errors_of([partial(describe_sandbox, kind)]):
            yield Problem(f"{problem.sentence} (on the machine that verifies answers)", True)


def _disk(plans: Plans) -> Iterator[Problem]:
    """Yield folders that cannot be written to, and the free space where it is low."""
    config = next(iter(plans.values())).config
    for path in (Path(config.results), Path(config.cache)):
        folder = path.absolute()
        while not folder.exists():
            folder = folder.parent
        if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            yield Problem(f"{folder} cannot be written to; correct that, or set another folder")
        elif (free := shutil.disk_usage(folder).free) < _LOW:
            yield Problem(f"{folder}: only {free / 1e9:.1f} GB are free", is_warning=True)


def _gpu(plans: Plans) -> Iterator[Problem]:
    """Yield why PyTorch cannot use this machine's GPU; a machine without one has no fault."""
    from evaluation.scoring.gpus import choose_device

    device = next(iter(plans.values())).config.scoring.device
    yield from _errors_of([partial(choose_device, device)])

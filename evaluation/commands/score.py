"""`score` evaluates checkpoints on a stage's suite; `loglikelihood` scores any file of requests."""

import argparse
import os
from collections.abc import Sequence

from evaluation.checkpoints.subjects import Subject
from evaluation.commands import (
    Commands,
    a_name,
    a_path,
    add_command,
    add_configured,
    add_subjects,
    asked_subjects,
    configured_plans,
    whole_number,
)
from evaluation.commands.checkpoint import add_use_mup
from evaluation.commands.doctor import OFFLINE
from evaluation.errors import ConfigError, EvaluationError, ScoringError, report
from evaluation.records import RECORDED, recorded_error
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import named_stage


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    """Add `score`, `collect`, `expect` and `loglikelihood`."""
    command = add_configured(commands, _score, "score checkpoints of a stage (offline)", stage=True)
    several = "steps of the stage; several share the visible GPUs"
    add_subjects(command, bridge=True, steps=several)
    command.add_argument(
        "--part",
        type=_a_part,
        metavar="K/N",
        help="score part K of N of one checkpoint into the store; a last run without it writes results",
    )
    command.add_argument("--planned", help=argparse.SUPPRESS)  # by a run: what it expects

    about = "write the tier files of scored checkpoints from their stored scores"
    command = add_configured(commands, _collect, about, stage=True)
    add_subjects(command, bridge=True)
    command.add_argument("--planned", help=argparse.SUPPRESS)

    command = add_command(
        commands, _expect, "check that a result file exists; if not, show why it could not be made"
    )
    command.add_argument("file", type=a_path)

    _add_loglikelihood(commands)


def _add_loglikelihood(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = add_command(
        commands, _loglikelihood, "score a JSONL file of contexts and continuations"
    )
    command.add_argument("checkpoint", type=a_path)
    add_use_mup(command)
    command.add_argument("--requests", type=a_path, required=True, help="JSONL")
    command.add_argument(
        "--output",
        type=a_path,
        required=True,
        help="FILE.jsonl, which appears whole at the end",
    )
    command.add_argument(
        "--tokenizer", type=a_name, help="hub id or folder (default: the checkpoint's)"
    )
    command.add_argument(
        "--dtype", choices=("auto", "float32", "bfloat16", "float16"), default="auto"
    )
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    command.add_argument("--max-length", type=whole_number(1), help="context window, in tokens")


def _a_part(text: str) -> tuple[int, int]:
    number, _, total = text.partition("/")
    if not (number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part such as 3/8")
    return int(number), int(total)


def _score(options: argparse.Namespace) -> int:
    """Score checkpoints of a stage, by hand also write their tier files; RECORDED if some cannot be."""
    os.environ.update(OFFLINE)
    plans = configured_plans(options)
    plan = named_stage(plans, options.stage, options.config)
    subjects = asked_subjects(options, plan, plans)
    if plan.config.scoring.device != "cpu":
        from evaluation.scoring.gpus import take_gpus

        take_gpus(len(subjects))
    if options.part:
        return _score_part(plan, subjects, options.part, options.planned)
    from evaluation.flow.job import score
    from evaluation.flow.job_logs import remove_earlier
    from evaluation.flow.targets import ScoringJob

    code = score(subjects, options.planned, options.config)
    if not options.planned:
        return max(code, _collect(options))
    batch = ScoringJob(tuple(subjects), ()).name
    remove_earlier(plan.results / "eval_logs/score", batch, options.planned)
    return code


def _collect(options: argparse.Namespace) -> int:
    """Make checkpoints' results of their scores; return RECORDED if there are none of some."""
    from evaluation.flow.job_logs import remove_earlier
    from evaluation.flow.make import check_planned, make_collect
    from evaluation.flow.targets import Targets

    plans, targets, code = configured_plans(options), Targets(), 0
    plan = named_stage(plans, options.stage, options.config)
    subjects = asked_subjects(options, plan, plans)
    named = [targets.collect(subject) for subject in subjects]
    check_planned(named, options.planned)
    for subject, target in zip(subjects, named, strict=True):
        record = make_collect(subject, targets, target)
        if options.planned:
            place = str(subject.folder.relative_to(plan.results))
            remove_earlier(plan.results / "eval_logs/collect", place, options.planned)
        code = code if record.error is None else report(record.error) and RECORDED
        print(subject.folder)
    return code


def _score_part(
    plan: StagePlan, subjects: Sequence[Subject], part: tuple[int, int], planned: str | None
) -> int:
    """Score a part of one checkpoint's keys into the store; RECORDED if a run's last job records why not."""
    if len(subjects) != 1:
        raise ConfigError(f"stages.{plan.name}: --part scores one checkpoint; name one step")
    from evaluation.flow.make import check_planned
    from evaluation.flow.targets import Targets
    from evaluation.scoring.job import score_share
    from evaluation.scoring.loop import Share

    check_planned([Targets().score(subjects[0])], planned)
    try:
        score_share(subjects[0], Share(*part))
    except EvaluationError as error:
        if planned is None or not error.is_final:
            raise
        return report(str(error)) and RECORDED
    return 0


def _expect(options: argparse.Namespace) -> int:
    """Check that a result file exists; otherwise raise ScoringError with the reason."""
    if options.file.is_file():
        return 0
    why = recorded_error(options.file.parent, "score", "collect") or "nothing has made it"
    raise ScoringError(f"{options.file}: no such result: {why}")


def _loglikelihood(options: argparse.Namespace) -> int:
    """Score a file of contexts and continuations."""
    os.environ.update(OFFLINE)
    from evaluation.scoring.requests import score_request_file

    rows = score_request_file(
        options.checkpoint,
        options.requests,
        options.output,
        tokenizer=options.tokenizer,
        dtype=options.dtype,
        device=options.device,
        max_length=options.max_length,
        use_mup=options.use_mup,
    )
    print(f"{rows} rows written to {options.output}")
    return 0

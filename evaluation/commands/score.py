"""`score`: checkpoints on their stage's suite; `loglikelihood`: any file of requests."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.commands import add_config, add_stage, whole_number
from evaluation.commands.prefill import Commands
from evaluation.errors import ConfigError
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan, plan_stages

if TYPE_CHECKING:
    from evaluation.scoring.results import Subject

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
"""With these set, the libraries fail at once instead of waiting for a network."""


def add_commands(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = commands.add_parser("score", help="score checkpoints of a stage (offline)")
    add_config(command)
    add_stage(command)
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--step",
        type=whole_number(0),
        nargs="+",
        help="step of the stage; several share the GPUs that it sees",
    )
    which.add_argument("--bridge", action="store_true", help="the stage's bridge checkpoint")
    command.set_defaults(run=score)

    command = commands.add_parser(
        "loglikelihood", help="log-probabilities of a JSONL file of contexts and continuations"
    )
    command.add_argument("checkpoint", type=Path)
    command.add_argument("--requests", type=Path, required=True, help="FILE.jsonl or .jsonl.gz")
    command.add_argument("--output", type=Path, required=True, help="FILE.jsonl to write")
    command.add_argument("--tokenizer", help="hub id or folder; the checkpoint's own if not given")
    command.add_argument(
        "--dtype", choices=("auto", "float32", "bfloat16", "float16"), default="auto"
    )
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    command.add_argument("--max-length", type=whole_number(2), help="context window, in tokens")
    command.set_defaults(run=loglikelihood)


def score(options: argparse.Namespace) -> int:
    os.environ.update(OFFLINE)
    plans = plan_stages(load_config(options.config))
    if options.stage not in plans:
        raise ConfigError(
            f"{options.config}: no stage {options.stage!r}; there are {', '.join(plans)}"
        )
    plan = plans[options.stage]
    if options.step and len(options.step) > 1:
        from evaluation.orchestration.workers import score_on_all_gpus

        score_on_all_gpus(plan, options.step, options.config)
        return 0

    from evaluation.scoring.external import run_external
    from evaluation.scoring.job import score_checkpoint

    subject = _subject(plan, plans, options)
    run = run_external if plan.stage.command else score_checkpoint
    print(run(plan, subject))
    return 0


def _subject(
    plan: StagePlan, plans: dict[str, StagePlan], options: argparse.Namespace
) -> "Subject":
    from evaluation.checkpoints.subjects import bridge_checkpoint, stage_steps
    from evaluation.scoring.results import bridge_subject, step_subject

    if options.bridge:
        bridge = bridge_checkpoint(plan, plans)
        return bridge_subject(plan, bridge.path, bridge.step)
    (step,) = options.step
    if not plan.checkpoint(step).is_dir():
        raise ConfigError(
            f"stages.{plan.name}: no checkpoint of step {step} under "
            f"{plan.stage.checkpoints}; the configured steps are "
            f"{', '.join(map(str, stage_steps(plan)))}"
        )
    return step_subject(plan, step)


def loglikelihood(options: argparse.Namespace) -> int:
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
    )
    print(f"{rows} rows written to {options.output}")
    return 0

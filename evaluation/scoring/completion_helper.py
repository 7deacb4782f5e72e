"""Generate and store a part of a checkpoint's completions, as a program that `shared_completions` starts."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.checkpoints.subjects import Subject, bridge_subject, candidate_subject
from evaluation.children import end_with_parent
from evaluation.exit_codes import exit_code, start_logging
from evaluation.json_text import load_json
from evaluation.prefill.entries import read_meta
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.answer_queue import answer
from evaluation.scoring.answers import GenerationRequest, stopping_with
from evaluation.scoring.lacking import Lacking
from evaluation.scoring.session import Job
from evaluation.settings.config import load_config
from evaluation.settings.generation import Sampling
from evaluation.settings.planning import plan_stages
from evaluation.tokenizers.base import LoadedTokenizer


def help_out(path: Path) -> int:
    """Generate and store the completions that another process requests, by `shared_completions`."""
    request = load_json(path.read_bytes())
    subject = _subject(request)
    job = Job(subject, read_meta(subject.plan.tokenizer_folder), request["vocab_size_needed"])
    tokenizer = stage_tokenizer(subject.plan)
    lacking = [_lacking(item, tokenizer) for item in request["items"]]
    answer(job, [item.asked(job) for item in lacking], job.backend.answers)
    job.check_unchanged()
    return 0


def _subject(request: dict[str, Any]) -> Subject:
    plans = plan_stages(load_config(request["config"]))
    plan, candidate = plans[request["stage"]], request["candidate"]
    if candidate is None:
        return bridge_subject(plan, plans)
    return candidate_subject(plan, candidate)


def _lacking(item: dict[str, Any], tokenizer: LoadedTokenizer) -> Lacking:
    requests = [
        GenerationRequest(
            prompt["id"],
            tuple(prompt["tokens"]),
            prompt["max_new_tokens"],
            tuple(prompt["samples"]),
            Sampling.model_validate(prompt["sampling"]),
        )
        for prompt in item["requests"]
    ]
    stopping = stopping_with(tokenizer, item["eos"], item["stop"])
    return Lacking(item["name"], item["item"], item["key"], requests, stopping, None)


if __name__ == "__main__":
    start_logging()
    end_with_parent(int(sys.argv[2]))
    sys.exit(exit_code(partial(help_out, Path(sys.argv[1]))))

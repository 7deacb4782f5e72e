"""Generate and store a part of a checkpoint's completions, as a program that `shared_completions` starts."""

import pickle
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from evaluation.checkpoints.subjects import bridge_subject, candidate_subject
from evaluation.children import end_with_parent
from evaluation.exit_codes import exit_code, prepare_streams, start_logging
from evaluation.prefill.entries import read_meta
from evaluation.prefill.tokenizers import stage_tokenizer
from evaluation.scoring.answer_queue import answer
from evaluation.scoring.session import Job
from evaluation.settings.config import load_config
from evaluation.settings.planning import plan_stages


def help_out(path: Path) -> int:
    """Generate and store the completions that another process requests, by `shared_completions`."""
    request, lacking = pickle.loads(path.read_bytes())
    plans = plan_stages(load_config(request["config"]))
    plan, candidate = plans[request["stage"]], request["candidate"]
    subject = (
        bridge_subject(plan, plans) if candidate is None else candidate_subject(plan, candidate)
    )
    job = Job(subject, read_meta(plan.tokenizer_folder), request["vocab_size_needed"])
    decode = stage_tokenizer(plan).decode_answer
    items = [replace(item, stopping=replace(item.stopping, decode=decode)) for item in lacking]
    answer(job, [item.asked(job) for item in items], job.backend.answers)
    job.check_unchanged()
    return 0


if __name__ == "__main__":
    prepare_streams()
    start_logging()
    end_with_parent(int(sys.argv[2]))
    sys.exit(exit_code(partial(help_out, Path(sys.argv[1])), is_scoring=True))

"""Generate answers with vLLM, which reads a checkpoint's weights from a Hugging Face folder.

`program` describes the files that are exchanged. The folder is on the node's own disk (TMPDIR) until
all answers are written. vLLM draws other samples than the built-in engine, and its greedy answers
differ where two tokens nearly tie. So answers of two engines are compared with a warning.
"""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from evaluation.checkpoints.load import load_model
from evaluation.errors import ScoringError
from evaluation.files import write_json, write_jsonl
from evaluation.processes import (
    THREADS,
    end_group,
    end_with_parent,
    environment,
    is_python,
    usable_memory,
)
from evaluation.scoring.answers import Answer, AnswersAbout, GenerationRequest, Requests
from evaluation.scoring.session import Job
from evaluation.settings.computing import GenerationSettings
from evaluation.tokenizers.files import write_plain_copy

TOGETHER = 4096
"""Most answers that vLLM has at a time, waiting or being written: more than it can batch."""

_POLL = 0.2
PART_SECONDS = 30.0
"""Seconds after which answers are yielded: each part is a file of the store."""

_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # on CPU: as many threads as THREADS says
}


def vllm_answers(job: Job, requests: Requests, vocabulary: int) -> Iterator[AnswersAbout]:
    """Yield the answers to requests in parts, each with vLLM's version.

    Raises:
        ScoringError: When vLLM cannot be started, or ends before it has written all answers.
    """
    keys = list(requests)
    with TemporaryDirectory(prefix="vllm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _write_request(job, folder, requests, vocabulary)
        write_jsonl(folder / "cases.jsonl", map(_case, requests.values()))
        for lines in _lines(job, folder, len(keys)):
            answers = {
                (key := keys[line["number"]]): _answer(line, requests[key]) for line in lines
            }
            yield answers, {"vllm": json.loads((folder / "version.json").read_text())}


def _write_request(job: Job, folder: Path, requests: Requests, vocabulary: int) -> None:
    """Write the weights, the tokenizer and the settings."""
    dtype, is_cpu = job.backend.dtype, job.backend.device == "cpu"
    load_model(job.checkpoint, dtype=getattr(torch, dtype)).save_pretrained(folder / "model")
    share = job.plan.config.generation.memory_share
    if is_cpu:  # vLLM takes a share of all memory, of which only some is usable here
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        share *= min(1.0, usable_memory() / total)
    request = {
        "model": str(folder / "model"),
        "tokenizer": str(write_plain_copy(job.plan.tokenizer_folder, folder / "tokenizer")),
        "dtype": dtype,
        "window": max(len(one.tokens) + one.max_new_tokens for one in requests.values()),
        "together": TOGETHER,
        "memory_share": share,
        "is_cpu": is_cpu,
        "vocabulary": vocabulary if job.checkpoint.vocab_size > vocabulary else None,
    }
    write_json(folder / "request.json", request)


def _lines(job: Job, folder: Path, count: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of answers that the program writes; what it prints is in the job's log."""
    path, written, rest, part, until = folder / "answers.jsonl", 0, "", list[str](), 0.0
    path.touch()
    python = find_vllm(job.plan.config.generation)
    threads = {THREADS: str(torch.get_num_threads())} if job.backend.device == "cpu" else {}
    process = subprocess.Popen(
        [python, "-m", "evaluation.scoring.vllm.program", folder],
        stdin=subprocess.DEVNULL,
        stdout=2,
        env=environment() | _VARIABLES | threads,
        cwd=folder,
        start_new_session=True,
        preexec_fn=partial(end_with_parent, os.getpid()),
    )
    try:
        with open(path, encoding="utf-8") as file:
            while written < count:
                code = process.poll()  # before the last read
                *whole, rest = (rest + file.read()).split("\n")
                written, part = written + len(whole), part + whole
                is_due = written == count or code is not None or time.monotonic() > until
                if part and is_due:
                    yield [json.loads(line) for line in part]
                    part, until = [], time.monotonic() + PART_SECONDS
                elif code is None:
                    time.sleep(_POLL)
                else:
                    raise ScoringError(
                        f"vLLM ({python}) ended with code {code} after {written} of {count} answers; why "
                        "is in the job's log; those answers are stored, and the next run resumes"
                    )
    finally:
        end_group(process)


def find_vllm(generation: GenerationSettings) -> Path:
    """Return the Python of the environment that has vLLM; raise ScoringError if there is none."""
    python = Path(os.path.abspath(generation.python or ""))  # a virtual environment is a link
    if not is_python(python):
        raise ScoringError(
            f"generation.python: no {python}; install vLLM into an environment of its own and name its "
            "Python there, or leave `engine` out"
        )
    return python


def _case(request: GenerationRequest) -> dict[str, Any]:
    """Return a prompt with vLLM's settings for a sample, whose seed does not depend on others."""
    sampling, tokens = request.sampling, list(request.tokens)
    seeded = json.dumps([tokens, sampling.seed, request.sample]).encode()
    digest = hashlib.blake2b(seeded, digest_size=8)
    settings = {
        "max_tokens": request.max_new_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or -1,
        "seed": int.from_bytes(digest.digest(), "little") >> 2,  # vLLM needs fewer than 63 bits
        "stop": list(request.stopping.strings),
        "stop_token_ids": sorted(request.stopping.eos_ids),
    }
    return {"tokens": tokens, "settings": settings}


def _answer(line: dict[str, Any], request: GenerationRequest) -> Answer:
    answer = request.stopping.answer(request.tokens, line["tokens"], line["reason"])
    if line["reason"] == "stop_string" and answer.text == answer.raw:
        raise ScoringError(
            "vLLM ended an answer at a stop string that is not in its text; its tokenizer differs"
        )
    return answer

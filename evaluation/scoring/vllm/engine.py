"""Generate answers with vLLM, which reads a checkpoint's weights from a Hugging Face folder.

`program` describes the files that are exchanged. The folder is on the node's own disk (TMPDIR) until
all answers are written. vLLM draws other samples than the built-in engine, and its greedy answers
differ where two tokens nearly tie. So answers of two engines are compared with a warning.
"""

import hashlib
import json
import logging
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest
from evaluation.scoring.session import Job
from evaluation.settings.computing import GenerationSettings
from evaluation.tokenizers.files import write_plain_copy

log = logging.getLogger(__name__)

TOGETHER = 4096
"""Most answers that vLLM has at a time, waiting or being written: more than it can batch."""

_POLL = 0.2
_VARIABLES = {
    "PYTHONUNBUFFERED": "1",  # nothing that is printed is lost if it is killed
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # on CPU: as many threads as THREADS says
}


@dataclass
class Vllm:
    """vLLM for a job's checkpoint; `version` is set with its first answers."""

    job: Job
    version: str | None = None

    def answers(
        self, requests: Sequence[GenerationRequest], *, vocabulary: int
    ) -> Iterator[dict[AnswerKey, Answer]]:
        """Yield answers like `EngineBackend.answers`.

        Raises:
            ScoringError: When vLLM cannot be started, or ends before it has written all answers.
        """
        python = find_vllm(self.job.plan.config.generation)
        keys = [AnswerKey(i, s) for i, request in enumerate(requests) for s in request.samples]
        with TemporaryDirectory(prefix="vllm-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            self._write_request(folder, [requests[key.request] for key in keys], vocabulary)
            write_jsonl(
                folder / "cases.jsonl", (_case(requests[key.request], key.sample) for key in keys)
            )
            for lines in answer_lines(python, folder, len(keys), self._threads()):
                self.version = json.loads((folder / "version.json").read_text())
                yield {
                    (key := keys[line["number"]]): _answer(line, requests[key.request])
                    for line in lines
                }

    def _threads(self) -> dict[str, str]:
        """Return the variable that gives vLLM on a CPU as many threads as this process has."""
        is_cpu = self.job.backend.device == "cpu"
        return {THREADS: str(torch.get_num_threads())} if is_cpu else {}

    def _write_request(
        self, folder: Path, requests: Sequence[GenerationRequest], vocabulary: int
    ) -> None:
        """Write the weights, the tokenizer and the settings."""
        plan, checkpoint, dtype = self.job.plan, self.job.checkpoint, self.job.backend.dtype
        load_model(checkpoint, dtype=getattr(torch, dtype)).save_pretrained(folder / "model")
        share, is_cpu = plan.config.generation.memory_share, self.job.backend.device == "cpu"
        if is_cpu:  # vLLM takes a share of all memory, of which only some is usable here
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            share *= min(1.0, usable_memory() / total)
        request = {
            "model": str(folder / "model"),
            "tokenizer": str(write_plain_copy(plan.tokenizer_folder, folder / "tokenizer")),
            "dtype": dtype,
            "window": max(len(request.tokens) + request.max_new_tokens for request in requests),
            "together": TOGETHER,
            "memory_share": share,
            "is_cpu": is_cpu,
            "vocabulary": vocabulary if checkpoint.vocab_size > vocabulary else None,
        }
        write_json(folder / "request.json", request)


def answer_lines(
    python: Path, folder: Path, count: int, variables: dict[str, str]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of answers as the program writes them, some at a time; what it prints is in our log.

    Raises:
        ScoringError: When the program cannot be run, or ends too early.
    """
    path, written, rest = folder / "answers.jsonl", 0, ""
    path.touch()
    try:
        process = subprocess.Popen(
            [python, "-m", "evaluation.scoring.vllm.program", folder],
            stdin=subprocess.DEVNULL,
            stdout=2,
            env=environment() | _VARIABLES | variables,
            cwd=folder,
            start_new_session=True,
            preexec_fn=partial(end_with_parent, os.getpid()),
        )
    except OSError as error:
        raise ScoringError(f"generation.python: {python} cannot be run ({error})") from None
    try:
        with open(path, encoding="utf-8") as file:
            while written < count:
                code = process.poll()  # before the last read
                *whole, rest = (rest + file.read()).split("\n")
                written += len(whole)
                if whole:
                    yield [json.loads(line) for line in whole]
                elif code is not None:
                    raise ScoringError(
                        f"vLLM ({python}) ended with code {code} after {written} of {count} answers; what "
                        "it printed is in the job's log; those answers are stored, and the next run resumes"
                    )
                else:
                    time.sleep(_POLL)
    finally:
        end_group(process)


def find_vllm(generation: GenerationSettings) -> Path:
    """Return the Python of the environment that has vLLM; raise ScoringError if there is none."""
    python = generation.interpreter
    if python is None or not is_python(python):
        raise ScoringError(
            f"generation.python: no {python}; install vLLM into a separate environment and name its "
            "Python there, or leave `engine` out"
        )
    return python


def _case(request: GenerationRequest, sample: int) -> dict[str, Any]:
    """Return a prompt with vLLM's settings for one sample."""
    sampling = request.sampling
    return {
        "tokens": list(request.tokens),
        "settings": {
            "max_tokens": request.max_new_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k or -1,
            "seed": _seed(request.tokens, sampling.seed, sample),
            "stop": list(request.stopping.strings),
            "stop_token_ids": sorted(request.stopping.eos_ids),
        },
    }


def _seed(tokens: Sequence[int], seed: int, sample: int) -> int:
    """Return the seed of a sample, which depends neither on n nor on other requests."""
    digest = hashlib.blake2b(json.dumps([list(tokens), seed, sample]).encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little") >> 2  # vLLM needs fewer than 63 bits


def _answer(line: dict[str, Any], request: GenerationRequest) -> Answer:
    answer = request.stopping.answer(request.tokens, line["tokens"], line["reason"])
    if line["reason"] == "stop_string" and answer.text == answer.raw:
        raise ScoringError(
            "vLLM ended an answer at a stop string that is not in its text; its tokenizer differs"
        )
    return answer

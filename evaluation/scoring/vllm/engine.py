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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from evaluation.checkpoints.load import load_model
from evaluation.errors import ScoringError
from evaluation.files import write_json, write_jsonl
from evaluation.processes import (
    THREADS,
    NotStarted,
    PythonProgram,
    count_answers,
    environment,
    is_python,
    progress,
    usable_memory,
)
from evaluation.scoring.answers import Answer, AnswerKey, GenerationRequest
from evaluation.scoring.session import Job
from evaluation.settings.computing import GenerationSettings
from evaluation.tokenizers.files import write_plain_copy

log = logging.getLogger(__name__)

TOGETHER = 4096
"""Most answers that vLLM has at a time, waiting or being written: more than it can batch."""

SILENT = 1800.0
"""Seconds for which vLLM may print nothing, in addition to the time of one answer."""

SLOWEST = 10.0
"""Slowest expected speed of an answer, in tokens per second."""

_MODULE = "evaluation.scoring.vllm.program"
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
            samples = [(requests[key.request], key.sample) for key in keys]
            self._write_request(folder, samples, vocabulary)
            variables = _VARIABLES | self._threads()
            program = PythonProgram(python, _MODULE, (str(folder),), folder, variables, hear=_tell)
            silent = SILENT + max(request.max_new_tokens for request in requests) / SLOWEST
            for lines in answer_lines(program, len(keys), silent):
                self.version = json.loads((folder / "version.json").read_text())
                yield {
                    (key := keys[line["number"]]): _answer(line, requests[key.request])
                    for line in lines
                }

    def _memory_share(self) -> float:
        """Return the share of a device's memory that vLLM may take; on a CPU, only what is usable counts."""
        share = self.job.plan.config.generation.memory_share
        if self.job.backend.device != "cpu":
            return share
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return share * min(1.0, usable_memory() / total)

    def _threads(self) -> dict[str, str]:
        """Return the variable that gives vLLM on a CPU as many threads as this process has."""
        is_cpu = self.job.backend.device == "cpu"
        return {THREADS: str(torch.get_num_threads())} if is_cpu else {}

    def _write_request(
        self, folder: Path, samples: Sequence[tuple[GenerationRequest, int]], vocabulary: int
    ) -> None:
        """Write the weights, the settings, and each prompt with the index of a sample."""
        start, plan = time.perf_counter(), self.job.plan
        checkpoint, dtype = self.job.checkpoint, self.job.backend.dtype
        load_model(checkpoint, dtype=getattr(torch, dtype)).save_pretrained(folder / "model")
        log.info("weights for vLLM in %s in %.1f s", folder, time.perf_counter() - start)
        rules = {id(request.stopping): request.stopping for request, _ in samples}
        numbers = {name: number for number, name in enumerate(rules)}
        request = {
            "model": str(folder / "model"),
            "tokenizer": str(write_plain_copy(plan.tokenizer_folder, folder / "tokenizer")),
            "dtype": dtype,
            "window": max(len(request.tokens) + request.max_new_tokens for request, _ in samples),
            "together": TOGETHER,
            "memory_share": self._memory_share(),
            "is_cpu": self.job.backend.device == "cpu",
            "stopping": [
                {"eos": sorted(rule.eos_ids), "stop": list(rule.strings)} for rule in rules.values()
            ],
            "vocabulary": vocabulary if checkpoint.vocab_size > vocabulary else None,
        }
        write_json(folder / "request.json", request)
        cases = [
            _case(request, n) | {"stopping": numbers[id(request.stopping)]}
            for request, n in samples
        ]
        write_jsonl(folder / "cases.jsonl", cases)


def _tell(line: str) -> None:
    if line.strip():
        log.info("vLLM: %s", line)


def answer_lines(
    program: PythonProgram, count: int, silent: float
) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of answers as a program writes them, some at a time.

    Args:
        silent: Seconds without output after which it is stopped.

    Raises:
        ScoringError: When the program cannot be run, ends too early, or prints nothing for too long.
    """
    path = program.folder / "answers.jsonl"
    path.touch()
    written, rest = 0, ""
    try:
        with (
            program.started() as running,
            open(path, encoding="utf-8") as file,
            progress("answers by vLLM", count, "answer") as bar,
        ):
            while written < count:
                has_ended = not running.is_alive  # checked before the last read
                *whole, rest = (rest + file.read()).split("\n")
                lines = [json.loads(line) for line in whole]
                count_answers(bar, [len(line["tokens"]) for line in lines])
                written += len(lines)
                if lines:
                    yield lines
                elif has_ended:
                    raise ScoringError(
                        f"vLLM ({program.python}) has written {written} of {count} answers: its "
                        f"program {running.ended()}; all that it printed is in the "
                        "job's log; those answers are stored, and the next run resumes"
                    )
                elif time.monotonic() - running.heard > silent:
                    raise ScoringError(
                        f"vLLM has printed nothing for {silent:.0f} s and was stopped, with {written} of "
                        f"{count} answers written; those are stored, and the next run resumes; check "
                        "what else uses its GPU"
                    )
                else:
                    time.sleep(_POLL)
    except NotStarted as error:
        raise ScoringError(f"generation.python: {program.python} cannot be run ({error})") from None


def find_vllm(generation: GenerationSettings) -> Path:
    """Return the Python interpreter of the environment that has vLLM.

    Raises:
        ScoringError: When it does not exist, cannot be run, or has no vLLM.
    """
    python = generation.interpreter
    if python is None or not is_python(python):
        raise ScoringError(
            f"generation.python: no {python}; install vLLM into a separate environment and name its "
            "Python there, or leave `engine` out"
        )
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('vllm') is None)"
    try:
        done = subprocess.run(
            [python, "-c", look],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ScoringError(f"generation.python: {python} cannot be run ({error})") from None
    if done.returncode:
        raise ScoringError(
            f"generation.python: {python} has no vLLM; install it there, or leave `engine` out"
        )
    return python


def _case(request: GenerationRequest, sample: int) -> dict[str, Any]:
    return {
        "tokens": list(request.tokens),
        "max_new_tokens": request.max_new_tokens,
        **request.sampling.model_dump(include={"temperature", "top_p", "top_k"}),
        "seed": _seed(request.tokens, request.sampling.seed, sample),
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

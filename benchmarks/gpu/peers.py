"""lm-evaluation-harness, lighteval and vLLM on the same requests, each in a process of its own.

    request.json  ->  python -m benchmarks.gpu.peer_program FOLDER  ->  result.json

They read a Hugging Face folder, with a tokenizer made up of numbers, as the requests are ids.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from benchmarks.gpu.data import Task
from benchmarks.gpu.peer_program import word
from evaluation.interpreters import NotStarted, Program, environment, is_python
from evaluation.scoring.engine.window import Score

NAMES = ("lm_eval", "lighteval", "vllm")
SECONDS = 1800


class Failed(Exception):
    """A peer gave no scores; its text says why."""


def find(name: str, pythons: Mapping[str, Path]) -> Path | str:
    """The interpreter that has a peer: the one given for it, or this one; else what is missing."""
    python = pythons.get(name, Path(sys.executable))
    if not is_python(python):
        return f"no {python}"
    look = f"import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in ('{name}', 'torch')))"
    command = [str(python), "-c", look]
    done = subprocess.run(command, env=environment(), capture_output=True, check=False, timeout=60)
    return f"not installed for {python}" if done.returncode else python


def save_for_peers(model: PreTrainedModel, folder: Path) -> None:
    """The model as a Hugging Face folder, with a tokenizer whose words are `word(id)`."""
    model.save_pretrained(folder)
    words = {word(number): number for number in range(model.config.vocab_size)}
    tokenizer = Tokenizer(WordLevel(words, unk_token=word(0)))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    special = dict.fromkeys(("eos_token", "pad_token", "unk_token"), word(0))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)


def run(name: str, python: Path, folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """What it writes to result.json in `folder`; raises Failed."""
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps({"peer": name, **request}))
    variables = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "VLLM_DO_NOT_TRACK": "1"}
    program = Program(python, "benchmarks.gpu.peer_program", (str(folder),), folder, variables)
    waited = 0

    def keep_on() -> bool:
        nonlocal waited
        waited += 1
        return waited < SECONDS * 10  # asked ten times a second

    try:
        ended = program.run(keep_on)
    except NotStarted as error:
        raise Failed(f"{python} cannot be run ({error})") from None
    result = folder / "result.json"
    if ended.code or not result.is_file():
        raise Failed(f"its program {ended}")
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def compare(
    found: dict[str, Any],
    samples: Sequence[Task],
    ours: Mapping[str, Sequence[Score]],
    engine: Mapping[str, float],
    written: Mapping[str, float],
) -> dict[str, Any]:
    """A peer's figures beside the engine's.

    `engine` has its questions a second of each sample, `written` its tokens of answers a second.
    """
    tasks = {}
    for task in samples:
        its = found["tasks"][task.name]
        rate = task.questions / its["seconds"]
        pairs = zip(ours[task.name], its["scores"], strict=True)
        tasks[task.name] = {
            "seconds": its["seconds"],
            "questions_per_second": rate,
            "times_faster": engine[task.name] / rate,
            "largest_difference": max(abs(one.logprob - other) for one, other in pairs),
        }
    answers = {
        name: {"tokens_per_second": rate, "times_faster": written[name] / rate}
        for name, rate in found["answers"].items()
        if name in written
    }
    return {"version": found["version"], "tasks": tasks, "answers": answers}

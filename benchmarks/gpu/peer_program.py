"""python -m benchmarks.gpu.peer_program FOLDER: one peer scores the requests; see `peers`.

Each is asked through what its own command line uses below its tasks. Only scoring is timed.
"""

import importlib.metadata
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.gpu.data import NEW, Ids, prompts_of, read
from evaluation.scoring.engine.window import Request

Ask = Callable[[Sequence[Request]], list[float]]


class Peer(NamedTuple):
    """What scores requests, and what writes answers, where it can; a call of that gives tokens."""

    ask: Ask
    write: Callable[[Sequence[Ids]], int] | None = None


PACKAGES = {"lm_eval": "lm_eval", "lighteval": "lighteval", "vllm": "vllm"}


def lm_eval(request: dict[str, Any]) -> Peer:
    from lm_eval.models.huggingface import HFLM

    model = HFLM(
        pretrained=request["model"],
        dtype=request["dtype"],
        device=request["device"],
        batch_size="auto" if request["device"] == "cuda" else 16,
    )

    def ask(requests: Sequence[Request]) -> list[float]:
        triples = [(None, list(one.context), list(one.continuation)) for one in requests]
        return [nats for nats, _ in model._loglikelihood_tokens(triples, disable_tqdm=True)]

    return Peer(ask)


def lighteval(request: dict[str, Any]) -> Peer:
    from lighteval.models.transformers.transformers_model import (
        TransformersModel,
        TransformersModelConfig,
    )
    from lighteval.tasks.requests import Doc

    on_gpu = request["device"] == "cuda"
    config = TransformersModelConfig(
        model_name=request["model"],
        dtype=request["dtype"],
        device=request["device"],
        batch_size=None if on_gpu else 64,  # None: as many as fit
        max_length=request["window"],
        add_special_tokens=False,
        model_parallel=False,
        override_chat_template=False,
        cache_dir=request["cache"],
    )
    model = TransformersModel(config)

    def ask(requests: Sequence[Request]) -> list[float]:
        docs = [
            Doc(
                query=_words(one.context),
                choices=[f" {_words(one.continuation)}"],
                gold_index=0,
                id=str(number),
                task_name="benchmark",
            )
            for number, one in enumerate(requests)
        ]
        return [answer.logprobs[0] for answer in model._loglikelihood_tokens(docs)]

    return Peer(ask)


def vllm(request: dict[str, Any]) -> Peer:
    from vllm import LLM, SamplingParams

    model = LLM(
        model=request["model"],
        dtype=request["dtype"],
        max_model_len=request["window"] + NEW,
        skip_tokenizer_init=True,
    )
    wanted = SamplingParams(max_tokens=1, prompt_logprobs=0, detokenize=False)

    def ask(requests: Sequence[Request]) -> list[float]:
        prompts = [{"prompt_token_ids": [*one.context, *one.continuation]} for one in requests]
        answers = model.generate(prompts, wanted, use_tqdm=False)
        sums = []
        for one, answer in zip(requests, answers, strict=True):
            tail = answer.prompt_logprobs[-len(one.continuation) :]
            pairs = zip(one.continuation, tail, strict=True)
            sums.append(sum(table[token].logprob for token, table in pairs))
        return sums

    greedy = SamplingParams(max_tokens=NEW, temperature=0, ignore_eos=True, detokenize=False)

    def write(prompts: Sequence[Ids]) -> int:
        asked = [{"prompt_token_ids": list(ids)} for ids in prompts]
        return sum(
            len(one.outputs[0].token_ids) for one in model.generate(asked, greedy, use_tqdm=False)
        )

    return Peer(ask, write)


def word(number: int) -> str:
    """An id as text; 0 is the special token, whose text must be found in no other."""
    return str(number) if number else "<0>"


def _words(ids: Sequence[int]) -> str:
    return " ".join(map(word, ids))


PEERS = {"lm_eval": lm_eval, "lighteval": lighteval, "vllm": vllm}


def main() -> None:
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    torch.set_num_threads(request["threads"])
    data = read(Path(request["data"]), questions=request["questions"])
    samples = [task.spread(request["sample"]) for task in data.tasks]
    peer = request["peer"]
    made = PEERS[peer](request)
    made.ask(samples[0].requests[:16])  # warm
    clock = time.perf_counter if request["device"] == "cuda" else time.process_time
    tasks = {}
    for task in samples:
        start = clock()
        scores = made.ask(task.requests)
        tasks[task.name] = {"seconds": clock() - start, "scores": scores}
    answers = {}
    for task in samples if made.write else ():
        prompts = prompts_of(task)
        made.write(prompts[:16])  # warm
        start = clock()
        answers[task.name] = made.write(prompts) / (clock() - start)
    result = {
        "version": importlib.metadata.version(PACKAGES[peer]),
        "tasks": tasks,
        "answers": answers,
    }
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()

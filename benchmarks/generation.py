"""python -m benchmarks.generation: compares generation with transformers and lm-evaluation-harness.

All run in one process. The prompts are questions of OLMES: alone, which are short and of many lengths,
and after twelve solved ones, which all share. Answers end at EOS, at a stop string, or at the length
limit. The peers run batches padded on the left, in the batch size that is fastest for them.
"""

import argparse
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from benchmarks.measure import load, measure
from benchmarks.questions import read_questions
from evaluation.files import write_json
from evaluation.scoring.answers import AnswerKey, GenerationRequest, Stopping
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.generate import generate
from evaluation.settings.generation import Sampling

SAMPLES = 8
DRAWS = {"do_sample": True, "temperature": 1.0, "top_p": 0.95, "top_k": 0}
GREEDY = {"do_sample": False}
STOPS = ("Question:", "\n\n\n")
ROWS = 64
"""Rows that are decoded at once."""

Texts = list[str]
Run = Callable[[Sequence[str]], Any]


class Peers:
    """One model and tokenizer; each method generates with another library and returns the cut texts."""

    def __init__(self, model: PreTrainedModel, tokenizer: Tokenizer, longest: int) -> None:
        self.model, self.tokenizer, self.longest = model, tokenizer, longest
        self.device = model.device
        tokenizer.padding_side = "left"

    def engine(self, texts: Sequence[str], samples: int) -> Texts:
        sampling = Sampling(temperature=1.0, top_p=0.95, n=samples) if samples > 1 else Sampling()
        eos = frozenset({self.tokenizer.eos_token_id})
        stopping = Stopping(eos, STOPS, lambda _, ids: self.tokenizer.decode(ids))
        requests = [
            GenerationRequest(str(i), ids, self.longest, tuple(range(samples)), sampling, stopping)
            for i, ids in enumerate(map(tuple, self.tokenizer(list(texts))["input_ids"]))
        ]
        scored = Engine(self.model, row_tokens=1024, device=self.device.type)
        parts = generate(scored, requests, vocabulary=len(self.tokenizer), batch=ROWS)
        answers = {key: answer.text for part in parts for key, answer in part.items()}
        return [answers[AnswerKey(i, s)] for i in range(len(texts)) for s in range(samples)]

    def transformers(self, texts: Sequence[str], samples: int, batch: int) -> Texts:
        """Generate `batch` rows at once, from prompts of similar length."""
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        found: dict[int, Texts] = {}
        for start in range(0, len(order), max(1, batch // samples)):
            chosen = order[start : start + max(1, batch // samples)]
            given = self.tokenizer([texts[i] for i in chosen], return_tensors="pt", padding=True)
            ids = self.model.generate(
                **given.to(self.device),
                max_new_tokens=self.longest,
                num_return_sequences=samples,
                stop_strings=list(STOPS),
                tokenizer=self.tokenizer,
                pad_token_id=self.tokenizer.pad_token_id,
                **(DRAWS if samples > 1 else GREEDY),
            )[:, given["input_ids"].shape[1] :]
            cut = [_cut(text) for text in self.tokenizer.batch_decode(_ended(ids, self.tokenizer))]
            found |= {i: cut[k * samples : (k + 1) * samples] for k, i in enumerate(chosen)}
        return [text for i in range(len(texts)) for text in found[i]]

    def harness(self, texts: Sequence[str], samples: int, batch: int) -> Texts:
        """Generate with lm-evaluation-harness, where each sample is a separate request."""
        device = self.device.type
        peer = HFLM(
            pretrained=self.model, tokenizer=self.tokenizer, batch_size=batch, device=device
        )
        settings = {"until": list(STOPS), "max_gen_toks": self.longest}
        settings |= DRAWS if samples > 1 else GREEDY
        requests = [
            Instance(request_type="generate_until", doc={}, arguments=(text, settings), idx=i)
            for i, text in enumerate(text for text in texts for _ in range(samples))
        ]
        return list(peer.generate_until(requests, disable_tqdm=True))


def _ended(ids: torch.Tensor, tokenizer: Tokenizer) -> list[list[int]]:
    """Return rows of ids up to their EOS."""
    eos = tokenizer.eos_token_id
    return [row[: row.index(eos)] if eos in row else row for row in ids.tolist()]


def _cut(text: str) -> str:
    return text[: min([text.find(stop) for stop in STOPS if stop in text], default=len(text))]


def compare(
    peers: Peers, names: Sequence[str], batches: Sequence[int], texts: Sequence[str], samples: int
) -> dict[str, Any]:
    """Measure seconds of each (CPU time, or wall time on a GPU), and count equal texts of greedy answers."""
    ours = measure(peers.device, partial(peers.engine, texts, samples))
    result: dict[str, Any] = {"answers": len(texts) * samples, "engine_seconds": ours.seconds}
    for name in names:
        run = peers.transformers if name == "transformers" else peers.harness
        turns = {
            batch: measure(peers.device, partial(run, texts, samples, batch)) for batch in batches
        }
        best = min(turns, key=lambda batch: turns[batch].seconds)
        pairs = zip(ours.result, turns[best].result, strict=True)
        result[name] = {
            "batch": best,
            "seconds": turns[best].seconds,
            "times_faster": turns[best].seconds / ours.seconds,
            "equal": sum(one == other for one, other in pairs) if samples == 1 else None,
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=__doc__)
    demo = Path(".demo")
    parser.add_argument("--model", type=Path, default=demo / "models/smollm2-135m-instruct")
    parser.add_argument("--packages", type=Path, default=demo / "packages", help="folder of wheels")
    parser.add_argument("--output", type=Path, default=demo / "benchmarks-generation.json")
    parser.add_argument("--prompts", type=int, default=96, help="of each kind; an eighth sampled")
    parser.add_argument("--longest", type=int, default=128, help="tokens of an answer")
    parser.add_argument("--peers", nargs="+", default=["transformers", "harness"])
    parser.add_argument("--batches", nargs="+", type=int, default=[8, 16, 32], help="of the peers")
    parser.add_argument("--kinds", nargs="+", default=["alone", "few-shot"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    peers = Peers(*load(options.model), options.longest)
    result: dict[str, Any] = {}
    prompts = _prompts(options.packages, peers.tokenizer, options.prompts)
    for name, texts in ((kind, prompts[kind]) for kind in options.kinds):
        for samples in (1, SAMPLES):
            chosen = texts[::samples]
            label = f"{name}, {'greedy' if samples == 1 else f'{samples} samples'}"
            result[label] = compare(peers, options.peers, options.batches, chosen, samples)
            print(_line(label, result[label]), flush=True)
    write_json(options.output, result)


def _line(label: str, run: dict[str, Any]) -> str:
    words = [
        f"{name} {run[name]['seconds']:.1f} s (rows {run[name]['batch']}): "
        f"{run[name]['times_faster']:.1f}x"
        + ("" if run[name]["equal"] is None else f", {run[name]['equal']} equal")
        for name in ("transformers", "harness")
        if name in run
    ]
    return f"{label}: {run['answers']} answers in {run['engine_seconds']:.1f} s; {'; '.join(words)}"


def _prompts(packages: Path, tokenizer: Tokenizer, count: int) -> dict[str, Texts]:
    """Return chats of one question each, and questions after twelve solved ones."""
    questions = [
        question
        for task in ("arc_easy", "hellaswag", "socialiqa", "openbookqa")
        for question in read_questions(packages, f"{task}/rc_0shot", count // 4 + 12)
    ]
    random.Random(0).shuffle(questions)
    shots = "".join(f"{one.context}{one.continuations[0]}\n\n\n" for one in questions[:12])
    rest = questions[12 : 12 + count]
    turns = [[{"role": "user", "content": f"{one.context} Explain."}] for one in rest]
    chats = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return {"alone": chats, "few-shot": [f"{shots}{one.context}" for one in rest]}


if __name__ == "__main__":
    main()

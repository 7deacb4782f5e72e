"""Where a checkout has what, and how its programs run: what a redesign edits, and all that it edits."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch

SHARED = Path(os.environ.get("EVAL_SHARED", Path(__file__).resolve().parents[3] / "shared"))

VERDICTS = """
import gzip, json, sys
from pydantic import TypeAdapter, ValidationError
from evaluation.settings.checks import Check
from evaluation.settings.verifiers import Verifier
from evaluation.verification.pool import verify_all

kinds = TypeAdapter(Verifier), TypeAdapter(Check)

def read(settings):
    try:
        return kinds["check" in settings].validate_python(settings)
    except ValidationError:
        return None

if __name__ == "__main__":
    with gzip.open(sys.argv[1], "rt") as lines:
        rows = [json.loads(line) for line in lines]
    jobs = [(key, known, d, text) for key, s, d, text in rows if (known := read(s)) is not None]
    asked = [job[1:] for job in jobs]
    found = dict(verify_all(asked, workers=2, seconds=60, nltk_data=sys.argv[3]))
    with gzip.open(sys.argv[2], "wt") as file:
        for number, (key, *_) in enumerate(jobs):
            file.write(json.dumps([key, found[number].credit]) + "\\n")
"""
"""Verdicts on a file of [key, settings, document, completion] into one of [key, credit]; what the checkout
refuses is left out, so that it differs."""

WARM = """
import json, os, runpy, sys
import torch, transformers, datasets

def run(log, words):
    child = os.fork()
    if child:
        return child
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1), os.dup2(output, 2)
    sys.argv = ["evaluation", *words]
    try:
        runpy.run_module("evaluation", run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        sys.stdout.flush()
        os._exit(stop.code if isinstance(stop.code, int) else 1 if stop.code else 0)
    os._exit(0)

running, codes = {}, {}
for number, (log, words) in enumerate(json.load(sys.stdin)):
    if len(running) == 2:
        child, status = os.wait()
        codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
    running[run(log, words)] = number
while running:
    child, status = os.wait()
    codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
print(json.dumps([codes[number] for number in range(len(codes))]))
"""
"""Commands of the package, two at a time, in forks of one process, so that each imports nothing."""


@dataclass(frozen=True)
class Checkout:
    """A checkout whose programs run in a folder; Python is the one that runs this."""

    root: Path
    folder: Path

    def environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("EVAL", "SNAKEMAKE"))}
        offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        nltk = str(self.root / ".demo/nltk_data")
        return {**inherited, **offline, "NLTK_DATA": nltk, "PYTHONPATH": str(self.root),
                "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}  # fmt: skip

    def python(self, *words: str, given: str = "") -> str:
        """Return what a Python program prints; raise with its errors if it fails."""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *words],
            input=given, text=True, capture_output=True, cwd=self.folder, env=self.environment(),
        )  # fmt: skip
        if done.returncode:
            said = (done.stdout + done.stderr)[-4000:]
            raise RuntimeError(f"{' '.join(words)[:200]}: exit {done.returncode}\n{said}")
        return done.stdout

    def commands(self, lists: Sequence[Sequence[str]], logs: Path) -> list[tuple[int, str]]:
        """Return exit code and output of each command of the package."""
        logs.mkdir(parents=True, exist_ok=True)
        jobs = [(str(logs / f"{number}.log"), words) for number, words in enumerate(lists)]
        codes = json.loads(self.python("-c", WARM, given=json.dumps(jobs)).splitlines()[-1])
        texts = [Path(log).read_text(errors="replace") for log, _ in jobs]
        return list(zip(codes, texts, strict=True))

    def snakemake(self, config: Path, *targets: str) -> None:
        options = ("--cores", "2", "--configfile", str(config), "--quiet", "all")
        snakefile = ("--snakefile", str(self.root / "Snakefile"))
        self.python("-m", "snakemake", *targets, *snakefile, *options)

    def verdicts(self, jobs: Path, found: Path) -> None:
        program = self.folder / "verdicts.py"
        program.write_text(VERDICTS)
        self.python(str(program), str(jobs), str(found), str(self.root / ".demo/nltk_data"))


def loglikelihood(checkpoint: Path, requests: Path, output: Path, *tokenizer: str) -> list[str]:
    """Return the command that scores a file of requests."""
    named = [word for name in tokenizer for word in ("--tokenizer", name)]
    files = ["--requests", str(requests), "--output", str(output)]
    kinds = ["--dtype", "float32", "--max-length", "256"]
    return ["loglikelihood", str(checkpoint), *files, *named, *kinds]


def scores(output: Path) -> list[tuple[float, bool]]:
    """Return sum of log-probabilities, and whether it is greedy, of each request."""
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    return [(row["logprob"], row["is_greedy"]) for row in rows]


def entries(cache: Path) -> Iterator[tuple[str, Any]]:
    """Yield kind, name and content of everything that prefill made: tokens, examples, prompts."""
    for path in sorted(cache.rglob("packed_tokens.pt")):
        packed = torch.load(path, weights_only=True)
        parts = packed if isinstance(packed, dict) else {"tokens": packed}
        for part, value in parts.items():
            content = value.flatten().tolist() if isinstance(value, torch.Tensor) else value
            yield f"{path.parent.name}/{part}", [content]
    for name in ("examples.jsonl", "prompts.jsonl", "docs.jsonl"):
        for path in sorted(cache.rglob(name)):
            lines = [json.loads(line) for line in path.read_text().split("\n") if line]
            yield f"{path.parent.name}/{name}", lines


def units(results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tables of what each block, question and prompt adds to each metric, by checkpoint and tier."""
    for path in sorted(results.rglob("tier*_units.parquet")):
        yield (
            str(path.relative_to(results)).removesuffix("_units.parquet"),
            pq.read_table(path).to_pylist(),
        )


def documents(results: Path) -> Iterator[tuple[str, Any]]:
    """Yield each checkpoint's and stage's JSON: values, deltas, verdicts, recommendation, quality."""
    names = ("tier2_ppl", "tier3_cf", "tier4_sft_native", "tier5_verified", "bridge_deltas",
             "recommendation", "task_quality")  # fmt: skip
    for name in names:
        for path in sorted(results.rglob(f"{name}.json")):
            yield str(path.relative_to(results)), json.loads(path.read_text())


def summaries(results: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the long table of each stage."""
    for path in sorted(results.rglob("summary.parquet")):
        yield str(path.parent.relative_to(results)), pq.read_table(path).to_pylist()


def completions(results: Path) -> Iterator[tuple[str, str]]:
    """Yield the text of each generated answer, by checkpoint, task, prompt and sample."""
    for path in sorted(results.rglob("generation/*/results.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            place = path.parent.relative_to(results)
            yield f"{place}/{row['id']}/{row.get('sample', 0)}", row["completion"]
    for path in sorted(results.rglob("tier4_sft_native_generations.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            yield f"{path.relative_to(results)}/{row.get('probe') or row['id']}", row


def read_jsonl(path: Path) -> list[Any]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def write_jsonl(path: Path, rows: Sequence[Any] | Iterator[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

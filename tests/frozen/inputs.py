"""What the numbers are numbers of: models, suites, questions, completions. Made once."""

import contextlib
import gzip
import itertools
import json
import os
import random
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
import transformers
import yaml
from safetensors.torch import load_file

from tests.frozen.checkout import SHARED, Checkout, read_jsonl, write_jsonl
from tests.frozen.models import plain_scores, short_training, tiny_classes

MODEL = ".demo/models/smollm2-135m-instruct"
LEFT_OUT = ("olmobase", "ruler")
"""Suites that the project gives up."""
READERS = ("number", "mathematics")
"""Kinds of verifiers that the project gives up."""
PROBES = "tests/verification/checks/answers"


def make(folder: Path, checkout: Checkout) -> None:
    """Make all inputs in a folder, from a checkout whose demo's data are there."""
    demo = checkout.root / ".demo"
    shutil.copytree(checkout.root / MODEL, folder / "smollm2")
    shutil.copytree(demo / "mirrors", folder / "mirrors")
    _tokenizers(folder / "tokenizers", checkout.root)
    suites(demo / "task_suites", folder / "suites")
    tiny_classes(folder / "classes")
    steps = {"first/20": 20, "first/40": 40, "second/60": 60, "second/80": 80, "second/110": 110}
    short_training(folder / "smollm2", {folder / "ckpts" / name: n for name, n in steps.items()})
    shutil.copytree(folder / "smollm2", folder / "ckpts/real/1")
    _requests(folder)
    questions(folder / "data")
    write_jsonl(folder / "completions.jsonl.gz", verdict_jobs(checkout.root))


def _tokenizers(folder: Path, root: Path) -> None:
    """Train small SentencePiece models; keep one as it is, and one as a tokenizer.json with byte fallback."""
    work = folder / "work"
    work.mkdir(parents=True)
    shutil.copytree(root / "docs", work / "docs")
    with contextlib.chdir(work), open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
        runpy.run_path(str(SHARED / "cases/make_tokenizers.py"))
    shutil.copytree(work / "tok/v_llama_min", folder / "sentencepiece")
    fast = transformers.LlamaTokenizerFast.from_pretrained(work / "tok/v_llama_legacy_false")
    fast.save_pretrained(folder / "byte_fallback")
    (folder / "byte_fallback/tokenizer.model").unlink(missing_ok=True)
    shutil.rmtree(work)
    template = transformers.AutoTokenizer.from_pretrained(folder.parent / "smollm2").chat_template
    for path in folder.glob("*/tokenizer_config.json"):
        config = json.loads(path.read_text())
        path.write_text(json.dumps({**config, "chat_template": template}))


def suites(source: Path, target: Path) -> None:
    """Copy suites, but those that go, and without verifiers that go."""
    target.mkdir()
    for path in sorted(source.glob("*.yaml")):
        if path.name.startswith((*LEFT_OUT, "demo_")):
            continue
        suite = yaml.safe_load(path.read_text())
        for task in suite.get("generation_tasks", {}).values():
            kept = {
                k: v for k, v in task.get("verifiers", {}).items() if v.get("kind") not in READERS
            }
            if kept:
                task["verifiers"] = kept
            if task.get("primary") not in kept and kept:
                task["primary"] = next(iter(kept))
            task["limit"] = min(task.get("limit", 24), 24)
        (target / path.name).write_text(yaml.safe_dump(suite, sort_keys=False, allow_unicode=True))


def _requests(folder: Path) -> None:
    """Write requests for SmolLM2, Nanotron's fixtures and tiny classes, and plain log-probabilities."""
    target = folder / "requests"
    target.mkdir()
    with gzip.open(SHARED / "reference/lm_eval_smollm2_135m_instruct.jsonl.gz", "rt") as lines:
        rows = [row for row in map(json.loads, lines) if row["doc_id"] < 12]
    asked = [candidate for row in rows for candidate in row["candidates"]]
    keys = ("context_tokens", "continuation_tokens")
    requests = [{key: candidate[key] for key in keys} for candidate in asked]
    _write(target / "smollm2.jsonl", requests)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "smollm2", dtype=torch.float32
    )
    plain = {"smollm2": plain_scores(model, requests)}
    theirs = {"smollm2": [candidate["logprob"] for candidate in asked]}
    for path in sorted((SHARED / "fixtures/nanotron").glob("*/reference_logits.safetensors")):
        name, reference = path.parent.name, load_file(path)
        rows, logits = _of_fixture(reference)
        _write(target / f"{name}.jsonl", rows)
        theirs[name] = logits
    dice = random.Random(0)
    tiny = [_tiny_request(dice) for _ in range(24)]
    _write(target / "classes.jsonl", tiny)
    for path in sorted((folder / "classes").iterdir()):
        try:
            tiny_model = transformers.AutoModelForCausalLM.from_pretrained(
                path, dtype=torch.float32
            )
            plain[path.name] = plain_scores(tiny_model.eval(), tiny)
        except Exception as error:  # noqa: BLE001 (nothing to be near to)
            print(f"{path.name}: no plain pass ({type(error).__name__})", flush=True)
    (folder / "plain.json").write_text(json.dumps({"plain": plain, "theirs": theirs}))


def _of_fixture(
    reference: dict[str, torch.Tensor],
) -> tuple[list[dict[str, list[int]]], list[float]]:
    """Return requests for the first document of a row, and their log-probabilities by Nanotron's logits."""
    ids = reference["input_ids"][0].tolist()
    nats = reference["logits"][0].double().log_softmax(-1)
    positions = (
        reference["position_ids"][0].tolist() if "position_ids" in reference else range(len(ids))
    )
    length = next((n for n, place in enumerate(positions) if n and place == 0), len(ids))
    rows, sums = [], []
    for cut in range(1, length - 3, 3):
        rest = ids[cut : cut + 3]
        rows.append({"context_tokens": ids[:cut], "continuation_tokens": rest})
        sums.append(sum(float(nats[cut - 1 + n, token]) for n, token in enumerate(rest)))
    return rows, sums


def _tiny_request(dice: random.Random) -> dict[str, list[int]]:
    context = [dice.randrange(3, 96) for _ in range(dice.choice((1, 5, 30, 60)))]
    return {
        "context_tokens": context,
        "continuation_tokens": [dice.randrange(3, 96) for _ in range(dice.choice((1, 4)))],
    }


def _write(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def questions(folder: Path) -> None:
    """Write text, questions and prompts of the judged stages, from real data."""
    text = pq.read_table(SHARED / "data/Salesforce/wikitext/wikitext-103-raw-v1/test.parquet")[
        "text"
    ]
    pages = [page.strip() for page in text.to_pylist() if len(page) > 400]
    _write(folder / "wiki.jsonl", [{"text": page} for page in pages[-60:]])
    _write(folder / "early.jsonl", [{"text": page} for page in pages[:60]])
    rows = pq.read_table(SHARED / "data/Rowan/hellaswag/default/validation.parquet").to_pylist()[
        :120
    ]
    asked = [{"ctx": r["ctx"], "endings": r["endings"], "label": int(r["label"])} for r in rows]
    _write(folder / "endings.jsonl", asked)
    begun = [
        {"id": str(n), "text": " ".join(p.split()[:12]), "gold": "the"}
        for n, p in enumerate(pages[:48])
    ]
    _write(folder / "begun.jsonl", begun)


def verdict_jobs(root: Path) -> Iterator[list[Any]]:
    """Yield [key, settings, document, completion] for completions and probe answers of a checkout's tests."""
    yield from _canned(root)
    yield from _read(root / "tests/reading/completions.jsonl.gz")
    yield from _probes(root)


def _patterns() -> dict[str, dict[str, Any]]:
    ignored = [",", r"\$", r"(?s).*#### ", r"\.$"]
    strict = {"kind": "pattern", "pattern": r"#### (\-?[0-9\.\,]+)", "form": "#### {gold}"}
    flexible = {"kind": "pattern", "pattern": r"(-?[$0-9.,]{2,}|-?[0-9]+)", "take": "last"}
    return {"strict": {**strict, "ignore": ignored}, "flexible": {**flexible, "ignore": ignored}}


def _canned(root: Path) -> Iterator[list[Any]]:
    """Yield every completion that other harnesses judged (`tests.verification.make_references`)."""
    program = (
        "import json, sys; from pathlib import Path\n"
        "from tests.verification.make_references import FILES, cases\n"
        "for task in FILES:\n"
        "    for number, (_, row, name, text) in enumerate(cases(Path(sys.argv[1]), task)):\n"
        "        print(json.dumps([f'{task}/{number}/{name}', task, row, text], default=str))\n"
    )
    run = [sys.executable, "-c", program, str(SHARED)]
    lines = subprocess.run(
        run, cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    math = {name: {"kind": name} for name in ("minerva", "boxed", "math_verify")}
    levels = list(itertools.product(("prompt", "instruction"), ("strict", "loose")))
    for key, task, row, text in map(json.loads, lines):
        if task == "gsm8k":
            views, document = _patterns(), {"gold": row["answer"].split("#### ")[1]}
        elif task == "math_500":
            views, document = math, {"gold": row["solution"]}
        else:
            views = {
                f"{level} {mode}": {"kind": task, "level": level, "mode": mode}
                for level, mode in levels
            }
            document = {
                "prompt": row["prompt"],
                "instruction_ids": row["instruction_id_list"],
                "arguments": row["kwargs"],
            }
        for name, settings in views.items():
            yield [f"{key}/{name}", settings, document, text]


def _read(path: Path) -> Iterator[list[Any]]:
    """Yield completions of numbers, formulas and programs that people or models wrote."""
    views = {
        **_patterns(),
        "math_verify": {"kind": "math_verify"},
        "boxed": {"kind": "boxed"},
        "minerva": {"kind": "minerva"},
    }
    for line in read_jsonl(path):
        if line["kind"] in ("number", "math"):
            for name, settings in views.items():
                yield [
                    f"read/{line['id']}/{name}",
                    settings,
                    {"gold": line["gold"]},
                    line["completion"],
                ]
        elif line["kind"] == "program":
            settings = {"kind": "program", "seconds": 5.0, "memory_mb": 512}
            yield [
                f"read/{line['id']}/program",
                settings,
                _program_document(line),
                line["completion"],
            ]


def _program_document(line: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a program: with `check` and prefix if the prompt is code."""
    try:
        compile(line["prompt"].rstrip() + "\n    pass\n", "prompt", "exec")
    except SyntaxError:
        return {"tests": line["tests"]}
    tests = line["tests"].replace(f"{line['entry_point']}(", "candidate(").splitlines()
    body = "".join(f"    {test}\n" for test in tests)
    return {
        "tests": f"def check(candidate):\n{body}",
        "prefix": line["prompt"],
        "entry_point": line["entry_point"],
    }


def _probes(root: Path) -> Iterator[list[Any]]:
    """Yield answers to the shipped probes, for each check."""
    probes = yaml.safe_load((root / "task_suites/stage4_sft_native.yaml").read_text())["probes"]
    answers = [
        (probe, text)
        for path in sorted((root / PROBES).glob("*.yaml"))
        for probe, kinds in yaml.safe_load(path.read_text()).items()
        for texts in kinds.values()
        for text in texts
    ]
    with gzip.open(root / PROBES / "independent.jsonl.gz", "rt") as lines:
        answers += [(row["probe"], row["answer"]) for row in map(json.loads, lines)]
    for number, (probe, text) in enumerate(answers):
        for place, check in enumerate(probes[probe]["checks"]):
            yield [f"probe/{probe}/{number}/{place}", check, {}, text]

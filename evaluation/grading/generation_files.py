"""`generation/<task>/`: a task's completions, verdicts and rates under the names scripts read.

completions.jsonl   a line per sample: prompt, completion, how it ended
results.jsonl       the same with what each verifier says
summary.json        the task's part of tier5_verified.json
pass_at_k.json      pass@k by verifier, where there are several samples
prompts.parquet     a row per prompt and verifier: samples, how many pass in full, pass rate, strata
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluation.files import write_json, write_jsonl, write_parquet
from evaluation.grading.completions import Prompt, Sample

FOLDER = "generation"

PROMPTS = pa.schema(
    [
        ("id", pa.string()),
        ("verifier", pa.string()),
        ("n", pa.int32()),
        ("correct", pa.int32()),
        ("pass_rate", pa.float64()),
        ("weight", pa.float64()),
        ("truncated", pa.int32()),
        ("errors", pa.int32()),
        ("strata", pa.string()),
    ]
)
"""`n` counts the samples that the verifier could judge; rates are null where there are none."""


def prompt_rows(prompts: Sequence[Prompt], views: Sequence[str]) -> pa.Table:
    """Rows of PROMPTS, the verifiers of a prompt together."""
    rows = [_prompt_row(prompt, view) for prompt in prompts for view in views]
    return pa.Table.from_pylist(rows, schema=PROMPTS)


def _prompt_row(prompt: Prompt, view: str) -> dict[str, Any]:
    known = prompt.known(view)
    return {
        "id": prompt.line.id,
        "verifier": view,
        "n": len(known),
        "correct": prompt.right(view),
        "pass_rate": prompt.credit(view),
        "weight": sum(verdict.weight for verdict in known) / len(known) if known else 0.0,
        "truncated": sum(s.completion.stop_reason == "length" for s in prompt.samples),
        "errors": len(prompt.samples) - len(known),
        "strata": json.dumps(prompt.line.strata),
    }


def task_files(
    name: str,
    prompts: Sequence[Prompt],
    texts: Mapping[str, str],
    summary: Mapping[str, Any],
    views: Sequence[str],
) -> dict[str, Callable[[Path], object]]:
    """How each file of a task is written, by its path in the checkpoint's folder.

    `texts` are the prompts as the model read them.
    """
    files: dict[str, Callable[[Path], object]] = {
        "completions.jsonl": partial(write_jsonl, rows=_lines(prompts, texts, with_verdicts=False)),
        "results.jsonl": partial(write_jsonl, rows=_lines(prompts, texts, with_verdicts=True)),
        "prompts.parquet": partial(write_parquet, table=prompt_rows(prompts, views)),
        "summary.json": partial(write_json, content=dict(summary)),
    }
    at_k = {v: one["pass_at_k"] for v, one in summary["verifiers"].items() if "pass_at_k" in one}
    if at_k:
        files["pass_at_k.json"] = partial(write_json, content=at_k)
    return {f"{FOLDER}/{name}/{file}": write for file, write in files.items()}


def _lines(
    prompts: Sequence[Prompt], texts: Mapping[str, str], *, with_verdicts: bool
) -> Iterator[dict[str, Any]]:
    for prompt in prompts:
        for sample in prompt.samples:
            yield {
                "id": prompt.line.id,
                "sample": sample.index,
                "prompt": texts[prompt.line.id],
                "completion": sample.completion.text,
                "stop_reason": sample.completion.stop_reason,
                "prompt_tokens": sample.completion.prompt_tokens,
                "completion_tokens": sample.completion.tokens,
                **({"verdicts": _verdicts(sample)} if with_verdicts else {}),
            }


def _verdicts(sample: Sample) -> dict[str, dict[str, Any]]:
    return {
        view: {
            "credit": v.credit,
            "answer": v.answer,
            "reason": v.reason,
            "weight": v.weight,
            **({"note": v.note} if v.note else {}),
        }
        for view, v in sample.verdicts.items()
    }

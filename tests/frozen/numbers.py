"""The numbers of a checkout, as lines of kind, key and value, by running its programs on frozen inputs."""

import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.frozen import checkout as read
from tests.frozen import worlds
from tests.frozen.checkout import SHARED, Checkout, loglikelihood, read_jsonl, scores

Line = tuple[str, str, Any]
"""Kind (which decides what is equal), key, value."""

WALL = tuple(
    "seconds per_second time created duration memory version versions commit host path folder".split()
)
"""Words in keys of what is no number of a model: when, where and by what it was made."""


def make_part(name: str, folder: Path, checkout: Checkout) -> list[Line]:
    """Return the numbers of one of `PARTS`, made anew in a folder of its own."""
    print(f"{name} of {checkout.root}", flush=True)
    place = replace(checkout, folder=checkout.folder / name)
    shutil.rmtree(place.folder, ignore_errors=True)
    place.folder.mkdir(parents=True)
    return list(PARTS[name](folder, place))


def _likelihoods(folder: Path, checkout: Checkout) -> Iterator[Line]:
    """Yield log-probabilities of SmolLM2, Nanotron's fixtures and tiny classes, and distances to plain."""
    jobs = {"smollm2": (folder / "smollm2", "smollm2")}
    index = json.loads((SHARED / "fixtures/nanotron/INDEX.json").read_text())
    for name, facts in index.items():
        jobs[name] = (SHARED / "fixtures/nanotron" / name / facts["checkpoint_dir"], name)
    for path in sorted((folder / "classes").iterdir()):
        jobs[path.name] = (path, "classes")
    outputs = {name: checkout.folder / "scores" / f"{name}.jsonl" for name in jobs}
    asked = [
        loglikelihood(place, folder / f"requests/{requests}.jsonl", outputs[name],
                      *() if requests == "smollm2" else (str(folder / "smollm2"),))
        for name, (place, requests) in jobs.items()
    ]  # fmt: skip
    plain = json.loads((folder / "plain.json").read_text())
    for name, (code, said) in zip(
        jobs, checkout.commands(asked, checkout.folder / "logs"), strict=True
    ):
        yield "exact", f"{name}: exit code", code
        if code:
            print(
                f"{name}: {said.strip().splitlines()[-1][:200] if said.strip() else code}",
                flush=True,
            )
            continue
        found = scores(outputs[name])
        for number, (nats, is_greedy) in enumerate(found):
            yield "candidate", f"{name}: request {number}", nats
            yield "exact", f"{name}: request {number} is greedy", is_greedy
        for whose, sums in plain.items():
            if name in sums:
                errors = [
                    abs(nats - other) for (nats, _), other in zip(found, sums[name], strict=True)
                ]
                yield "distance", f"{name}: farthest from {whose}", max(errors)


def _prefilled(folder: Path, checkout: Checkout) -> Iterator[Line]:
    """Yield what prefill makes of the entries of each suite that the checkout ships, with each tokenizer.

    Those that it cannot make are printed, such as data sets that are not on this machine.
    """
    for tokenizer in ("byte_level", "sentencepiece", "byte_fallback"):
        suites, cache = checkout.root / "task_suites", checkout.folder / tokenizer / "cache"
        config = worlds.shipped(folder, suites, checkout.folder / tokenizer, tokenizer)
        command = ["prefill", "--config", str(config)]
        ((code, said),) = checkout.commands([command], checkout.folder / "logs" / tokenizer)
        absent = {*worlds.items(suites)} - {path.parent.name for path in cache.rglob("meta.json")}
        print(f"{tokenizer}: prefill ended with {code}; not made: {', '.join(sorted(absent))}")
        print(*(line for line in said.splitlines() if " ERROR " in line), sep="\n", flush=True)
        for key, lines in read.entries(cache):
            yield "exact", f"{tokenizer}/{key}: lines", len(lines)
            yield (
                "exact",
                f"{tokenizer}/{key}: first",
                lines[:2] if len(str(lines[:2])) < 4000 else None,
            )
            yield "exact", f"{tokenizer}/{key}: digest", _digest(lines)


def _judged(folder: Path, checkout: Checkout) -> Iterator[Line]:
    """Yield units, values, deltas, verdicts, recommendation and answers of three stages, run by Snakemake."""
    config = worlds.judged(folder, checkout.folder / "judged")
    checkout.snakemake(config, "prefill")
    checkout.snakemake(config, "all")
    results = checkout.folder / "judged/results"
    for place, table in read.units(results):
        for row in table:
            yield from _cells(
                "unit", place, _key(row, ("metric", "item", "unit", "group", "position")), row
            )
    for place, content in read.documents(results):
        for path, value in _leaves(content):
            yield "value", f"{place}: {path}", value
    for place, table in read.summaries(results):
        for row in table:
            keys = ("tier", "item", "metric", "step", "position")
            yield from _cells("value", f"{place}/summary", _key(row, keys), row)
    for place, text in read.completions(results):
        yield "exact", place, text


def _verdicts(folder: Path, checkout: Checkout) -> Iterator[Line]:
    found = checkout.folder / "verdicts.jsonl.gz"
    checkout.verdicts(folder / "completions.jsonl.gz", found)
    for key, credit in read_jsonl(found):
        yield "exact", f"verdict: {key}", credit


PARTS = {
    "likelihoods": _likelihoods,
    "prefilled": _prefilled,
    "judged": _judged,
    "verdicts": _verdicts,
}


def _key(row: dict[str, Any], names: tuple[str, ...]) -> str:
    return "/".join(str(row[name]) for name in names if row.get(name) is not None)


IDENTIFYING = ("tier", "item", "metric", "step", "group", "first", "stratum", "name")
"""Keys of a row in a list that together say which it is, so that it may stand elsewhere."""


def _cells(kind: str, place: str, key: str, row: dict[str, Any]) -> Iterator[Line]:
    for column, value in row.items():
        if isinstance(value, float | int | bool | str | None):
            yield kind, f"{place}: {key}: {column}", None if value != value else value


def _leaves(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of everything in a JSON document but when, where and by what it was made."""
    if isinstance(content, dict):
        for key, value in content.items():
            if not any(word in key.lower() for word in WALL):
                yield from _leaves(value, f"{path}.{key}")
    elif isinstance(content, list):
        for number, value in enumerate(content):
            named = _key(value, IDENTIFYING) if isinstance(value, dict) else ""
            yield from _leaves(value, f"{path}[{named or number}]")
    else:
        yield path, None if isinstance(content, float) and math.isnan(content) else content


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

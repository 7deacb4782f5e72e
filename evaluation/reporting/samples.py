"""Questions and prompts of one checkpoint's item, each with what the model answered and its credit.

The one reader of answers: the page's flips, `show` and the logs for Inspect's viewer are made from it.
Credits are those of the table of units, from which every number is made.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.errors import CacheError, ResultsError
from evaluation.metrics.measures import candidate_scores
from evaluation.prefill.entries import META, read_meta
from evaluation.results.read import read_tier
from evaluation.results.tier_files import tiers_in
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS, TierName

TEXTS = {"tier3": "examples.jsonl", "tier5": "docs.jsonl"}
"""The prefilled file that has questions or right answers."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A candidate with its log-probability and the score that ranks it."""

    text: str
    logprob: float
    score: float


@dataclass(frozen=True, kw_only=True)
class ItemAnswer:
    """A question or prompt: `answer` is a completion, or the candidate that ranks first.

    `reasons` say why an answer has not the full credit; `number` counts the samples of one prompt.
    """

    id: str
    prompt: str
    target: str
    answer: str
    credit: float | None
    choices: tuple[Choice, ...] = ()
    reasons: tuple[str, ...] = ()
    stop: str = ""
    number: int = 0


Credits = Mapping[str, float]
"""Credits by unit; NaN where nothing could be judged."""


def credits_of(folder: Path, tier: TierName) -> dict[str, Credits]:
    """Return the credits of a tier's items; none of those without units. Raises ResultsError."""
    if tier not in tiers_in(folder):
        return {}
    of_tier, found = TIERS[tier], dict[str, Credits]()
    names = (of_tier.headline, *of_tier.unranked)
    for name, item in read_tier(folder, tier).items.items():
        shares = [n for n in names if n in item.measured and of_tier.metric(n).bounds == (0, 1)]
        if item.units is not None and shares:
            credits = item.measured[shares[0]].amounts.tolist()
            found[name] = dict(zip(item.units.ids, credits, strict=True))
    return found


def samples_of(
    plan: StagePlan, folder: Path, tier: TierName, item: str, ids: Collection[str] | None = None
) -> Iterator[ItemAnswer]:
    """Yield the samples of an item in the order of the data, or only those with the given ids.

    Raises:
        ResultsError: A file is missing or damaged, or the cache holds other questions than were scored.
    """
    credit = credits_of(folder, tier).get(item, {})
    wanted = credit if ids is None else {id: credit[id] for id in ids}
    read = {"tier3": _questions, "tier4": _probes, "tier5": _completions}
    try:
        yield from read[tier](plan, folder, item, wanted)
    except (KeyError, ValueError, TypeError, IndexError, OSError, pa.ArrowException) as error:
        raise ResultsError(f"{folder}: answers to {item} cannot be read: {error!r}") from None


def _known(credit: float) -> float | None:
    return None if math.isnan(credit) else credit


def _questions(plan: StagePlan, folder: Path, task: str, wanted: Credits) -> Iterator[ItemAnswer]:
    entry = json.loads((folder / TIERS["tier3"].summary_file).read_text())["tasks"][task]
    texts = _texts(plan, "tier3", task, entry.get("data_checksum"), wanted)
    primary = entry.get("primary") or "raw"
    table = pq.read_table(folder / TIERS["tier3"].items_file, filters=[("task", "==", task)])
    scores = candidate_scores(table)[primary].tolist()
    rows: dict[str, list[Any]] = {}
    columns = (table[name].to_pylist() for name in ("item", "candidate", "gold", "logprob"))
    for id, *row in zip(*columns, scores, strict=True):
        rows.setdefault(id, []).append(row)
    for id in wanted:
        own, (prompt, candidates) = rows[id], _readable(texts[id])
        choices = tuple(
            Choice(text=candidates[place], logprob=logprob, score=score)
            for place, _, logprob, score in own
        )
        target = candidates[next(row for row in own if row[1])[0]]
        first = max(choices, key=lambda choice: choice.score).text if len(choices) > 1 else ""
        yield ItemAnswer(
            id=id,
            prompt=prompt,
            target=target,
            answer=first,
            credit=_known(wanted[id]),
            choices=choices,
        )


def _readable(question: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return a question's prompt and its candidates, with what of their contexts differs."""
    contexts = [context["text"] for context in question["contexts"]]
    low, high = min(contexts), max(contexts)  # all contexts share what these two begin with
    differs = (place for place, letter in enumerate(low) if high[place] != letter)
    prompt = low[: next(differs, len(low))]
    candidates = question["candidates"]
    return prompt, [
        f"{contexts[one['context']][len(prompt) :]}{one['text']}".strip() for one in candidates
    ]


def _probes(plan: StagePlan, folder: Path, category: str, wanted: Credits) -> Iterator[ItemAnswer]:
    del plan
    tier = TIERS["tier4"]
    entries = json.loads((folder / tier.summary_file).read_text())["prompts"]
    checks = {entry["id"]: entry["checks"] for entry in entries}
    for line in _lines(folder / tier.items_file):
        if line["id"] in wanted and line.get("category") == category:
            failed = [
                f"{name} failed{': ' + check['note'] if check.get('note') else ''}"
                for name, check in checks[line["id"]].items()
                if not check["passed"]
            ]
            yield ItemAnswer(
                id=line["id"],
                prompt=line["prompt"],
                target=", ".join(checks[line["id"]]),
                answer=line["response"],
                credit=_known(wanted[line["id"]]),
                reasons=tuple(failed),
                stop=line.get("stop_reason") or "",
            )


def _completions(plan: StagePlan, folder: Path, task: str, wanted: Credits) -> Iterator[ItemAnswer]:
    entry = json.loads((folder / TIERS["tier5"].summary_file).read_text())["generation_tasks"][task]
    try:
        golds = _texts(plan, "tier5", task, entry.get("data_checksum"), wanted)
    except ResultsError:  # only the right answers are lacking
        golds = {}
    for line in _lines(folder / "generation" / task / "results.jsonl"):
        if line["id"] in wanted:
            verdicts = line["verdicts"]
            gold = golds.get(line["id"], {}).get("document", {}).get("gold", "")
            yield ItemAnswer(
                id=line["id"],
                prompt=line["prompt"],
                target=gold if isinstance(gold, str) else json.dumps(gold, ensure_ascii=False),
                answer=line["completion"],
                credit=verdicts[entry["primary"]]["credit"],
                reasons=tuple(
                    f"{v}: {x['reason']}" for v, x in verdicts.items() if x.get("reason")
                ),
                stop=line["stop_reason"],
                number=line["sample"],
            )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        yield from map(json.loads, file)


def _texts(
    plan: StagePlan, tier: TierName, item: str, checksum: Any, wanted: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Return the prefilled rows by id; raise ResultsError where the cache holds other data."""
    folder = plan.cache_folder(tier, item)
    try:
        stored = read_meta(folder).get("checksum", {}) if (folder / META).exists() else {}
    except CacheError as error:
        raise ResultsError(str(error)) from None
    if not isinstance(checksum, dict) or not checksum or not checksum.items() <= stored.items():
        raise ResultsError(
            f"{folder}: is not there, or holds other questions than those that were scored; prefill "
            "with the settings of that time, or score again"
        )
    with open(folder / TEXTS[tier], encoding="utf-8") as file:  # parsing all would take a while
        rows = [json.loads(line) for line in file if _id_of(line) in wanted]
    return {row["id"]: row for row in rows}


def _id_of(line: str) -> str:
    """Return the id that a line of a cache begins with."""
    start = '{"id": '
    if not line.startswith(start):
        return str(json.loads(line)["id"])
    return str(json.JSONDecoder().raw_decode(line, len(start))[0])

"""Tier4: checks verify what follows a model's thinking in each answer to a probe."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from evaluation.fingerprints import fingerprint
from evaluation.grading.units import by_headline, probe_units
from evaluation.grading.verdicts import AnswerJob, CompletionBatch
from evaluation.metrics.rates import COLUMNS, RATES, PromptRow, prompt_summary
from evaluation.results.kinds import Units
from evaluation.results.units_file import ByItem
from evaluation.scoring.stored_completions import StoredCompletion, counted_completions, sample_key
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import Probe
from evaluation.settings.tiers import TIERS
from evaluation.store import ScoreStore
from evaluation.verification.checks.registry import named
from evaluation.verification.thinking import checked_part, end_of_thinking
from evaluation.verification.verdicts import Verdict, unless_unfinished


def answer_parts(
    probes: Mapping[str, Probe],
    answers: Mapping[str, StoredCompletion],
    prompts: Mapping[str, str],
    templates: Mapping[str, str | None],
) -> dict[str, str | None]:
    """Return the parts of all answers that checks read; None where the thinking is unfinished."""
    return {
        name: checked_part(answer.text, prompts[name], probes[name].answer_after, templates[name])
        for name, answer in answers.items()
    }


def answered_probes(
    plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]
) -> tuple[dict[str, StoredCompletion], dict[str, str | None], dict[str, Mapping[str, Any]]]:
    """Return the stored answers to a stage's probes; raise ScoringError where one is not stored.

    Returns:
        Answers by probe in the order of the suite, their chat templates, and the summaries of the
        scores by name.
    """
    probes = plan.suite.probes
    answers: dict[str, StoredCompletion] = {}
    templates: dict[str, str | None] = {}
    summaries: dict[str, Mapping[str, Any]] = {}
    for chat in entry["chats"]:
        keys = {name: sample_key(entry["prompts"][name], 0) for name in chat["probes"]}
        stored, used = counted_completions(
            plan, store, "probes", chat["answers"], [*keys.values()], chat["stop"]
        )
        summaries |= used
        answers |= {name: stored[key] for name, key in keys.items()}
        templates |= dict.fromkeys(chat["probes"], chat["chat_template"])
    return {name: answers[name] for name in probes}, templates, summaries


def probe_batch(probes: Mapping[str, Probe], parts: Mapping[str, str | None]) -> CompletionBatch:
    """Return the checks of all answers, in the order of the suite and of each probe's checks.

    No check may raise an error, since a probe without a verdict would be in no rate.
    """
    jobs: list[AnswerJob] = []
    places = []
    for probe, one in probes.items():
        text = parts[probe] or ""
        for name, check in named(one.checks):
            jobs.append((check, {}, text))
            places.append(f"{name} of {probe}")
    keys = [fingerprint([job[0].model_dump(mode="json"), job[2]]) for job in jobs]
    settings = {"protocol": TIERS["tier4"].protocol}
    return CompletionBatch(
        "probes", "verdicts-probes", settings, jobs, keys, places, max_error_share=0.0
    )


def probe_table(
    probes: Mapping[str, Probe],
    texts: Mapping[str, str],
    answers: Mapping[str, StoredCompletion],
    parts: Mapping[str, str | None],
    verdicts: Iterable[Verdict],
) -> pa.Table:
    """Return a table of `rates.COLUMNS`: answers with the results of the checks in `probe_batch`'s order."""
    following = iter(verdicts)
    rows = []
    for name, probe in probes.items():
        answer = answers[name]
        judged = [
            (check_name, check.kind, unless_unfinished(verdict, parts[name] is None))
            for (check_name, check), verdict in zip(named(probe.checks), following, strict=False)
        ]
        checks = [
            {"name": check_name, "kind": kind, "passed": v.credit == 1, "note": v.note}
            for check_name, kind, v in judged
        ]
        rows.append(
            {
                "id": name,
                "category": probe.category,
                "headline": probe.headline,
                "prompt": texts[name],
                "response": answer.text,
                "stop_reason": answer.stop_reason,
                "prompt_tokens": answer.prompt_tokens,
                "response_tokens": answer.tokens,
                "checks": checks,
            }
        )
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def summarize(rows: Sequence[PromptRow]) -> tuple[dict[str, Any], ByItem]:
    """Return `summary`, `by_category` and `prompts` of `tier4_sft_native.json`, and the table of units.

    Args:
        rows: Prompts with the columns of `rates.COLUMNS`.
    """
    tier = TIERS["tier4"]
    units = probe_units(tier, rows)
    categories = {name: own for name, own in units.items() if name is not None}
    content = {
        "summary": _rates(units[None]),
        "by_category": {
            name: {"prompts": len(own.ids), **_rates(own)} for name, own in categories.items()
        },
        "prompts": [prompt_summary(row) for row in rows],
    }
    return content, by_headline(tier, units)


def _rates(units: Units) -> dict[str, float | None]:
    """Return all rates over some prompts; None where no prompt counts."""
    given = units.measured
    return {rate: given[rate].value if rate in given else None for rate in RATES}


def chats_in_file(
    chats: Iterable[Mapping[str, Any]], probes: Mapping[str, Probe]
) -> list[dict[str, Any]]:
    """Return the settings of conversations as `tier4_sft_native.json` has them."""
    parts: list[dict[str, Any]] = []
    for chat in chats:
        marks = {
            name: end_of_thinking(probes[name].answer_after, chat["chat_template"])
            for name in chat["probes"]
        }
        shared = {k: chat[k] for k in ("chat_template", "chat_template_kwargs", "stop")}
        for mark in dict.fromkeys(marks.values()):
            names = [name for name in chat["probes"] if marks[name] == mark]
            parts.append({"probes": names, **shared, "answer_after": mark})
    return parts


def generations(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of `tier4_sft_native_generations.jsonl`: prompts and answers, without checks."""
    columns = [name for name in COLUMNS.names if name not in ("headline", "checks")]
    rows: list[dict[str, Any]] = table.select(columns).to_pylist()
    return rows

"""Tier4: checks verify what follows a model's thinking in each answer to a probe."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.grading.units import by_headline, probe_units
from evaluation.grading.verdicts import AnswerJob
from evaluation.metrics.rates import RATES, PromptRow, prompt_summary
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

_NO_DOCUMENT: Mapping[str, Any] = {}


@dataclass(frozen=True)
class AnsweredProbe:
    """A probe, its prompt as the model read it, the answer, and what ends the thinking in it, if anything."""

    probe: Probe
    prompt: str
    answer: StoredCompletion
    template: str | None

    @property
    def end(self) -> str | None:
        """What ends the model's thinking; None: all of it is the answer."""
        return end_of_thinking(self.probe.answer_after, self.template)

    @property
    def part(self) -> str | None:
        """The part of the answer that checks read; None where the thinking is unfinished."""
        after = self.probe.answer_after
        return checked_part(self.answer.text, self.prompt, after, self.template)


Answered = Mapping[str, AnsweredProbe]


def answered_probes(
    plan: StagePlan, store: ScoreStore, entry: Mapping[str, Any]
) -> tuple[Answered, list[Mapping[str, Any]]]:
    """Return a stage's probes in the order of the suite, and the summaries of their scores.

    Raises:
        ScoringError: An answer is not stored.
    """
    found: dict[str, AnsweredProbe] = {}
    summaries: dict[str, Mapping[str, Any]] = {}
    for chat in entry["chats"]:
        keys = {name: sample_key(entry["prompts"][name], 0) for name in chat["probes"]}
        stored, used = counted_completions(
            plan, store, "probes", chat["answers"], [*keys.values()], chat["stop"]
        )
        summaries |= used
        for name, key in keys.items():
            probe, prompt = plan.suite.probes[name], entry["texts"][name]
            found[name] = AnsweredProbe(probe, prompt, stored[key], chat["chat_template"])
    return {name: found[name] for name in plan.suite.probes}, [*summaries.values()]


def probe_jobs(answered: Answered) -> dict[str, AnswerJob]:
    """Return the checks of all answers, by the place that errors name."""
    parts = {name: probe.part or "" for name, probe in answered.items()}
    return {
        f"{check_name} of {name}": (check, _NO_DOCUMENT, parts[name])
        for name, answer in answered.items()
        for check_name, check in named(answer.probe.checks)
    }


def probe_rows(answered: Answered, verdicts: Iterable[Verdict]) -> list[PromptRow]:
    """Return answers with the results of the checks in `probe_jobs`'s order."""
    following, rows = iter(verdicts), []
    for name, entry in answered.items():
        is_unfinished, checks = entry.part is None, []
        for (check_name, check), verdict in zip(named(entry.probe.checks), following, strict=False):
            verdict = unless_unfinished(verdict, is_unfinished)
            passed = {"passed": verdict.credit == 1, "note": verdict.note}
            checks.append({"name": check_name, "kind": check.kind, **passed})
        rows.append(
            {
                "id": name,
                "category": entry.probe.category,
                "headline": entry.probe.headline,
                "prompt": entry.prompt,
                "response": entry.answer.text,
                "stop_reason": entry.answer.stop_reason,
                "prompt_tokens": entry.answer.prompt_tokens,
                "response_tokens": entry.answer.tokens,
                "checks": checks,
            }
        )
    return rows


def summarize(rows: Sequence[PromptRow]) -> tuple[dict[str, Any], ByItem]:
    """Return `summary`, `by_category` and `prompts` of `tier4_sft_native.json`, and the table of units."""
    tier = TIERS["tier4"]
    units = probe_units(tier, rows)
    categories = {name: members for name, members in units.items() if name is not None}
    content = {
        "summary": _rates(units[None]),
        "by_category": {
            name: {"prompts": len(members.ids), **_rates(members)}
            for name, members in categories.items()
        },
        "prompts": [prompt_summary(row) for row in rows],
    }
    return content, by_headline(tier, units)


def _rates(units: Units) -> dict[str, float | None]:
    """Return all rates over some prompts; None where no prompt counts."""
    given = units.measured
    return {rate: given[rate].value if rate in given else None for rate in RATES}


def chats_in_file(chats: Iterable[Mapping[str, Any]], answered: Answered) -> list[dict[str, Any]]:
    """Return the settings of conversations as `tier4_sft_native.json` has them."""
    parts: list[dict[str, Any]] = []
    for chat in chats:
        shared = {k: chat[k] for k in ("chat_template", "chat_template_kwargs", "stop")}
        for mark in dict.fromkeys(answered[name].end for name in chat["probes"]):
            names = [name for name in chat["probes"] if answered[name].end == mark]
            parts.append({"probes": names, **shared, "answer_after": mark})
    return parts


def generations(rows: Iterable[PromptRow]) -> list[dict[str, Any]]:
    """Return the rows of `tier4_sft_native_generations.jsonl`: prompts and answers, without checks."""
    hidden = ("headline", "checks")
    return [{key: row[key] for key in row if key not in hidden} for row in rows]

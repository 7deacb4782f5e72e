"""Checks prefilled data: present, undamaged, made with current settings, usable offline."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.dependencies.caches import (
    CacheEntry,
    CacheStates,
    check_current,
    tier_entries,
    tokenizer_entry,
)
from evaluation.doctor.findings import Check, Finding
from evaluation.errors import EvaluationError
from evaluation.prefill.entries import check_entry, read_meta
from evaluation.prefill.tokenizers import read_report, stage_tokenizer
from evaluation.settings.plan import StagePlan
from evaluation.tokenizers.base import LoadedTokenizer
from evaluation.tokenizers.self_check import check_again


@dataclass
class Caches:
    """The valid entries by folder, and the tokenizers that could be loaded."""

    metas: dict[Path, dict[str, Any]] = field(default_factory=dict)
    tokenizers: dict[Path, LoadedTokenizer] = field(default_factory=dict)
    states: CacheStates = field(default_factory=CacheStates)

    def check(self, entry: CacheEntry) -> None:
        """Store `meta.json` of an entry that a job would accept; raise CacheError for another."""
        wanted = self.states.wanted(entry) or str(read_meta(entry.folder).get("definition"))
        meta = check_entry(entry.folder, wanted)
        if self.states.tokenizer(entry.plan):  # without it, a job reads no others
            check_current(self.states, entry)
        self.metas[entry.folder] = meta

    def of(self, plan: StagePlan) -> list[dict[str, Any]]:
        """Return the `meta.json` of each valid entry of a stage."""
        folders = [entry.folder for entry in tier_entries(plan)]
        return [self.metas[folder] for folder in folders if folder in self.metas]

    def complete(self, plan: StagePlan) -> bool:
        """Return whether a job of the stage finds everything that it reads, all valid."""
        found = len(self.of(plan)) == len(tier_entries(plan))
        return found and plan.tokenizer_folder in self.tokenizers

    def vocab_size_needed(self, plan: StagePlan) -> int:
        """Return the vocabulary size (rows of the embedding) that a stage needs; 0 if no entry is valid."""
        return max((int(meta["vocab_size_needed"]) for meta in self.of(plan)), default=0)


def check_tokenizers(plans: Iterable[StagePlan], caches: Caches) -> Check:
    """Check that tokenizers are complete, current and can be loaded; valid ones are added to `caches`."""
    seen: dict[Path, str] = {}
    findings: list[Finding] = []
    for plan in plans:
        folder = plan.tokenizer_folder
        if folder in seen:
            continue
        seen[folder] = plan.tokenizer.name
        try:
            caches.check(tokenizer_entry(plan))
            tokenizer, report = stage_tokenizer(plan), read_report(plan)
            check_again(tokenizer, report)
        except EvaluationError as error:
            findings.append(Finding("fault", plan.tokenizer.name, str(error)))
            continue
        caches.tokenizers[folder] = tokenizer
        seen[folder] = f"{plan.tokenizer.name} ({_checked(report)})"
        findings += [Finding("warning", plan.tokenizer.name, text) for text in report["remarks"]]
    return Check("tokenizer", ", ".join(dict.fromkeys(seen.values())), tuple(findings))


def _checked(report: dict[str, Any]) -> str:
    return f"{len(report['texts'])} texts as by {report['reference']}"


def check_caches(plans: Iterable[StagePlan], caches: Caches) -> Check:
    """Check that entries exist, match their checksums and are current; valid ones are added to `caches`."""
    entries = {entry.folder: entry for plan in plans for entry in tier_entries(plan)}
    findings = []
    for entry in entries.values():
        try:
            caches.check(entry)
        except EvaluationError as error:
            findings.append(Finding("fault", f"{entry.kind} {entry.name}", str(error)))
    return Check("caches", _count(entries, findings), tuple(findings))


def _count(folders: Collection[Path], findings: list[Finding]) -> str:
    if findings:
        return f"{len(findings)} of {len(folders)} entries are missing, stale or damaged"
    size = sum(
        path.stat().st_size for folder in folders for path in folder.iterdir() if path.is_file()
    )
    return f"{len(folders)} entries, {size / 1e6:,.1f} MB, every checksum right"


def check_offline(plans: Collection[StagePlan], caches: Caches) -> Check:
    """Check that a GPU job needs no network; external programs cannot be checked."""
    findings = []
    lacking = [plan.name for plan in plans if not caches.complete(plan)]
    if lacking:
        names = ", ".join(lacking)
        sentence = f"jobs of {names} would stop without the caches above; run `snakemake prefill`"
        findings.append(Finding("fault", "", sentence))
    for plan in plans:
        if plan.stage.command:
            sentence = (
                f"stages.{plan.name}.command is a program of yours, and whether it needs a network "
                "cannot be checked; try it once under `unshare -n`"
            )
            findings.append(Finding("warning", plan.name, sentence))
    return Check("offline", "jobs read checkpoints and caches, nothing else", tuple(findings))

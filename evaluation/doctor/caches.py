"""What prefill made: there, undamaged, of today's settings, and usable without a network."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.doctor.findings import Check, Finding
from evaluation.errors import EvaluationError
from evaluation.prefill.caches import FETCH, read_meta
from evaluation.prefill.conversations import chat_template
from evaluation.prefill.definitions import (
    probes_definition,
    saved_description,
    slice_definition,
    task_definition,
    tokenizer_definition,
)
from evaluation.prefill.entries import check_entry
from evaluation.prefill.tokenizers import AnyTokenizer, describe, load_tokenizer
from evaluation.settings.plan import StagePlan


@dataclass
class Caches:
    """The sound entries by folder, and the tokenizers that could be loaded."""

    metas: dict[Path, dict[str, Any]] = field(default_factory=dict)
    tokenizers: dict[Path, AnyTokenizer] = field(default_factory=dict)

    def of(self, plan: StagePlan) -> list[dict[str, Any]]:
        """What is known of a stage's items."""
        return [self.metas[folder] for folder, _ in items(plan) if folder in self.metas]

    def complete(self, plan: StagePlan) -> bool:
        """Whether a job of the stage finds all that it reads."""
        found = all(folder in self.metas for folder, _ in items(plan))
        return found and plan.tokenizer_folder in self.tokenizers

    def vocab_size_needed(self, plan: StagePlan) -> int:
        return max((int(meta["vocab_size_needed"]) for meta in self.of(plan)), default=0)


def items(plan: StagePlan) -> Iterator[tuple[Path, str]]:
    """Folder of each item of a stage and what it is: slice, task or probes."""
    for name in plan.suite.slices:
        yield plan.slice_folder(name), "slice"
    for name in plan.suite.tasks:
        yield plan.task_folder(name), "task"
    if plan.suite.probes:
        yield plan.probes_folder, "probes"


def check_tokenizers(plans: Iterable[StagePlan], caches: Caches) -> Check:
    """Each stage's tokenizer is saved whole and can be loaded from there; notes what it finds."""
    seen: dict[Path, str] = {}
    findings = []
    for plan in plans:
        folder = plan.tokenizer_folder
        if folder in seen:
            continue
        seen[folder] = plan.tokenizer.name
        try:
            caches.metas[folder] = check_entry(folder, tokenizer_definition(plan))
            caches.tokenizers[folder] = load_tokenizer(folder, use_fast=plan.tokenizer.use_fast)
        except EvaluationError as error:
            findings.append(Finding("fault", plan.tokenizer.name, str(error)))
    return Check("tokenizer", ", ".join(dict.fromkeys(seen.values())), tuple(findings))


def check_caches(plans: Iterable[StagePlan], caches: Caches) -> Check:
    """Every slice, task and set of prompts is there with its checksums; notes what it finds."""
    seen: set[Path] = set()
    findings = []
    for plan in plans:
        for folder, kind in items(plan):
            if folder in seen:
                continue
            seen.add(folder)
            try:
                caches.metas[folder] = check_entry(folder, _definition(plan, folder, kind, caches))
            except EvaluationError as error:
                name = plan.name if kind == "probes" else folder.name
                findings.append(Finding("fault", f"{kind} {name}", str(error)))
    return Check("caches", _count(seen, findings), tuple(findings))


def _count(seen: set[Path], findings: list[Finding]) -> str:
    if findings:
        return f"{len(findings)} of {len(seen)} entries are missing, stale or damaged"
    size = sum(
        path.stat().st_size for folder in seen for path in folder.iterdir() if path.is_file()
    )
    return f"{len(seen)} entries, {size / 1e6:,.1f} MB, every checksum right"


def _definition(plan: StagePlan, folder: Path, kind: str, caches: Caches) -> str:
    """What the entry's definition must be; its own where that cannot be told without tokenizer."""
    tokenizer = caches.tokenizers.get(plan.tokenizer_folder)
    if tokenizer is None:
        return str(read_meta(folder).get("definition"))
    about: Mapping[str, Any] = saved_description(caches.metas[plan.tokenizer_folder])
    if kind == "slice":
        return slice_definition(plan, folder.name, about)
    if kind == "task":
        return task_definition(plan, folder.name, about)
    about = describe(tokenizer, plan.tokenizer.name, plan.tokenizer.prepend_bos)
    return probes_definition(plan, chat_template(tokenizer, plan), about)


def check_offline(plans: Collection[StagePlan], caches: Caches) -> Check:
    """A GPU job reads the checkpoint and these caches, nothing else; external programs may."""
    findings = []
    lacking = [plan.name for plan in plans if not caches.complete(plan)]
    if lacking:
        sentence = (
            f"jobs of {', '.join(lacking)} would stop for want of the caches above; run `{FETCH}`"
        )
        findings.append(Finding("fault", "", sentence))
    for plan in plans:
        if plan.stage.command:
            sentence = (
                f"stages.{plan.name}.command is a program of yours, and whether it needs a network "
                "cannot be told; try it once under `unshare -n`"
            )
            findings.append(Finding("warning", plan.name, sentence))
    return Check("offline", "jobs read checkpoints and caches, nothing else", tuple(findings))

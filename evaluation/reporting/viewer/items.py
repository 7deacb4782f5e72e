"""All questions, prompts, completions and blocks of a checkpoint as a page lists them, and filters."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from evaluation.errors import ConfigError, ResultsError, no_such
from evaluation.reporting.flips.answers import probe_answers
from evaluation.reporting.flips.blocks import BlockTexts, block_losses
from evaluation.reporting.flips.items import NOT_CACHED
from evaluation.reporting.flips.questions import shared_start
from evaluation.reporting.viewer.samples import Sample, has_samples, samples_of
from evaluation.results.read import Results, TierResults, read_folder
from evaluation.results.table import SUMMARY, read_rows
from evaluation.settings.plan import StagePlan
from evaluation.settings.steps import results_folder

BRIDGE = "bridge"

Which = Literal["all", "wrong", "right", "changed", "worse", "better"]
WHICH: tuple[Which, ...] = ("all", "wrong", "right", "changed", "worse", "better")


@dataclass(frozen=True, kw_only=True)
class ShownChoice:
    """A candidate answer with the score that ranks it, and whether it is right and ranks first."""

    text: str
    score: float
    logprob: float
    is_right: bool
    is_first: bool


@dataclass(frozen=True, kw_only=True)
class ShownItem:
    """A question or prompt with what the model answered; `before` is the bridge's score, if there is one.

    A block of text has a loss as its score, whose unit is `loss`.
    """

    id: str
    prompt: str
    solved: str
    choices: tuple[ShownChoice, ...]
    outputs: tuple[str, ...]
    references: tuple[str, ...]
    score: float | None
    before: float | None
    scores: Mapping[str, float]
    method: str
    extracted: str
    reasons: tuple[str, ...]
    about: Mapping[str, Any]
    loss: str = ""

    @property
    def text(self) -> str:
        """All that a reader may search for, in lower case."""
        parts = (self.id, self.prompt, *self.outputs, *self.references)
        choices = (choice.text for choice in self.choices)
        return "\n".join((*parts, *choices, *self.reasons)).lower()

    def is_of(self, which: Which) -> bool:
        """Return whether a filter includes it."""
        change = None if self.score is None or self.before is None else self.score - self.before
        if self.loss:
            change = None if change is None else -change
            if which in ("wrong", "right"):
                return False
        match which:
            case "wrong":
                return self.score is None or self.score < 1
            case "right":
                return self.score == 1
            case "changed":
                return bool(change)
            case "worse":
                return change is not None and change < 0
            case "better":
                return change is not None and change > 0
        return True


def checkpoints_of(plan: StagePlan) -> list[str]:
    """Return a stage's checkpoints with results: `step_1000`, `bridge`."""
    path = plan.results / SUMMARY
    rows = read_rows(path) if path.exists() else []
    steps = dict.fromkeys(row["step"] for row in rows if row["role"] != BRIDGE)
    names = [results_folder(step) for step in steps]
    return names + ([BRIDGE] if plan.stage.bridge and plan.bridge_folder.is_dir() else [])


def folder_of(plan: StagePlan, checkpoint: str) -> Path:
    """Return the folder of a checkpoint's results.

    Raises:
        ConfigError: The stage has no such checkpoint.
    """
    checkpoints = checkpoints_of(plan)
    if checkpoint not in checkpoints:
        raise ConfigError(no_such("checkpoint", checkpoint, checkpoints, f" of {plan.name}"))
    return (
        plan.bridge_folder if checkpoint == BRIDGE else plan.results / "by_checkpoint" / checkpoint
    )


def tasks_of(results: Results) -> dict[str, list[str]]:
    """Return a checkpoint's tasks, categories and slices with samples or blocks, by tier."""
    tasks = {
        name: [item for item in tier.items if has_samples(tier, item)]
        for name, tier in results.tiers.items()
    }
    return {name: items for name, items in tasks.items() if items}


def read_items(plan: StagePlan, checkpoint: str, tier: str, task: str) -> list[ShownItem]:
    """Read all items of a task or slice, in the order of the data, the samples of a prompt together.

    Raises:
        ConfigError: The stage has no such checkpoint, or that has no such task.
        ResultsError: What was scored is no longer there, or damaged.
    """
    found, bridge = _tier_of(plan, checkpoint, tier, task), None
    if checkpoint != BRIDGE and BRIDGE in checkpoints_of(plan):
        with contextlib.suppress(ConfigError):  # it was not scored on the task
            bridge = _tier_of(plan, BRIDGE, tier, task)
    if found.tier.kind == "nats":
        return list(_blocks(plan, found, task, block_losses(bridge, task) if bridge else {}))
    samples = list(samples_of(plan, found, task))
    of_bridge = samples_of(plan, bridge, task) if bridge else ()
    before = {_key(sample): sample.score for sample in of_bridge}
    reasons = {}
    if tier == "tier4":
        answers = probe_answers(found, plan.suite.probes)
        reasons = {id: tuple(answer.get("why", ())) for id, (_, answer) in answers.items()}
    prompts = [sample.prompt for sample in samples] or [""]
    start = shared_start(min(prompts), max(prompts))  # as all between them share it, too
    return [
        _shown(sample, start, before.get(_key(sample)), reasons.get(sample.id, sample.reasons))
        for sample in samples
    ]


def _tier_of(plan: StagePlan, checkpoint: str, tier: str, task: str) -> TierResults:
    results = read_folder(folder_of(plan, checkpoint))
    tasks = tasks_of(results)
    if tier not in tasks:
        raise ConfigError(no_such("tier with questions", tier, tasks, f" of {checkpoint}"))
    if task not in tasks[tier]:
        raise ConfigError(no_such("task", task, tasks[tier], f" of {checkpoint}"))
    return next(found for name, found in results.tiers.items() if name == tier)


def _blocks(
    plan: StagePlan, found: TierResults, task: str, before: Mapping[str, float]
) -> Iterator[ShownItem]:
    """Yield the blocks of a slice with their whole text and loss."""
    texts = BlockTexts(plan) if found.tier.name == "tier2" else None
    checksum, unit = found.items[task].same.get("data"), found.tier.head.words
    for block, loss in block_losses(found, task).items():
        read = NOT_CACHED if texts is None else texts.read(task, checksum, int(block), None)["text"]
        yield ShownItem(
            id=f"block {block}",
            prompt=read,
            solved="",
            choices=(),
            outputs=(),
            references=(),
            score=loss,
            before=before.get(block),
            scores={unit: loss},
            method="",
            extracted="",
            reasons=(),
            about={},
            loss=unit,
        )


def _key(sample: Sample) -> tuple[str, Any]:
    return sample.id, (sample.about or {}).get("sample")


def _shown(sample: Sample, start: int, before: float | None, reasons: tuple[str, ...]) -> ShownItem:
    ranked = sample.outputs[0] if sample.choices and sample.outputs else None
    choices = tuple(
        ShownChoice(
            text=text,
            score=score,
            logprob=logprob,
            is_right=place == sample.gold,
            is_first=text == ranked,
        )
        for place, (text, logprob, score) in enumerate(
            zip(sample.choices, sample.logprobs, sample.ranked_by, strict=True)
        )
    )
    return ShownItem(
        id=sample.id,
        prompt=sample.prompt[start:],
        solved=sample.prompt[:start],
        choices=choices,
        outputs=() if choices else sample.outputs,
        references=() if choices else sample.references,
        score=sample.score,
        before=before,
        scores=sample.scores,
        method=sample.method,
        extracted="" if choices else sample.extracted,
        reasons=reasons,
        about={**(sample.about or {}), **_tokens(sample)},
    )


def _tokens(sample: Sample) -> dict[str, int]:
    if sample.tokens is None:
        return {}
    return {"prompt tokens": sample.tokens[0], "completion tokens": sample.tokens[1]}


@dataclass(frozen=True, kw_only=True)
class Query:
    """What a reader wants to see of a task: which items, with all words of `text`, and which part of them."""

    which: Which = "all"
    text: str = ""
    id: str = ""
    first: int = 0
    most: int = 50

    def select(self, items: Sequence[ShownItem]) -> list[ShownItem]:
        """Return the items that it includes, in their order; of one id all samples."""
        words = self.text.lower().split()
        return [
            item
            for item in items
            if (not self.id or item.id == self.id)
            and item.is_of(self.which)
            and all(word in item.text for word in words)
        ]


def as_json(items: Sequence[ShownItem], query: Query) -> dict[str, Any]:
    """Return what a page shows: the part of the items that a query includes, and how many there are."""
    chosen = query.select(items)
    part = chosen[query.first : query.first + query.most]
    return {
        "total": len(items),
        "counts": {which: sum(item.is_of(which) for item in items) for which in WHICH},
        "found": len(chosen),
        "first": query.first,
        "items": [asdict(item) for item in part],
    }


def some_items(items: Sequence[ShownItem], most: int) -> dict[str, Any]:
    """Return a few items for a page that has no server: at most so many wrong ones, and right ones."""
    shown = [*Query(which="wrong").select(items)[:most], *Query(which="right").select(items)[:most]]
    wrong = sum(item.is_of("wrong") for item in items)
    return {"of": len(items), "wrong": wrong, "shown": [asdict(item) for item in shown]}


def stage_tasks(plan: StagePlan) -> Iterator[tuple[str, str]]:
    """Yield tier and name of each task that any checkpoint of a stage has samples of."""
    seen: dict[tuple[str, str], None] = {}
    for checkpoint in checkpoints_of(plan):
        try:
            tasks = tasks_of(read_folder(folder_of(plan, checkpoint)))
        except ResultsError:
            continue
        seen |= dict.fromkeys((tier, task) for tier, names in tasks.items() for task in names)
    yield from seen

"""A provider's task: its documents as its program renders them, and its metrics of completions.

To score, the program handles the cases in order and writes each verdict at once. Where it dies, or a case
takes too long, that case gets a verdict without credit, and another process continues with the next one.
"""

import math
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from evaluation.errors import SourceError
from evaluation.processes import ProgramEnd
from evaluation.providers.adapters.contract import START_SECONDS
from evaluation.providers.program import INSTALL, Provider
from evaluation.settings.computing import Verification
from evaluation.settings.suites import Message
from evaluation.verification.verdicts import Verdict, shortened

MOST_STARTS = 20
"""Most processes for a batch; after these, the remaining cases have no verdict."""


class Document(BaseModel):
    """A document, with a prompt or messages whose answers are generated, or with choices that are ranked.

    `part` is the task that it belongs to, where a group of tasks was requested. A choice is a context with a
    continuation. `fields` are texts and whole numbers of a row of choices, by which a suite may group
    questions; `document` is what the provider needs to verify an answer.
    """

    id: str
    part: str
    prompt: str | None = None
    messages: list[Message] | None = None
    document: dict[str, Any] = {}
    gold: str | None = None
    choices: list[tuple[str, str]] = []
    unconditional: list[tuple[str, str]] | None = None
    right: int = Field(0, ge=0)
    fields: dict[str, Any] = {}

    @model_validator(mode="after")
    def _is_answerable(self) -> Self:
        if self.prompt is None and not self.messages and self.right >= len(self.choices):
            raise ValueError(f"{self.id}: its label is {self.right} of {len(self.choices)} choices")
        return self


class TaskInfo(BaseModel):
    """What the reply says of the task.

    `metrics` says of each whether more is better, `datasets` where each came from, `read` which dataset,
    configuration and split was read, and `documents` how many there are without the limit.
    """

    stop: list[str]
    max_new_tokens: int | None = Field(gt=0)
    num_fewshot: dict[str, int]
    metrics: dict[str, bool]
    datasets: dict[str, str]
    read: list[tuple[str, str | None, str]]
    documents: int = Field(gt=0)


def render(
    provider: Provider, key: str, request: Mapping[str, Any], seconds: float = 3600.0
) -> tuple[TaskInfo, list[Document]]:
    """Render a task, whose data may have to be downloaded; errors begin with its `key` in the suite."""
    (reply, *_), _ = provider.ask(key, request, seconds)
    try:
        info = TaskInfo.model_validate(reply.get("info"))
        return info, [Document.model_validate(one) for one in reply["documents"]]
    except ValidationError as error:
        what = error.errors()[0]["msg"]
        raise SourceError(
            f"{key}: {provider.name} wrote no valid rendered task ({what}); {INSTALL}"
        ) from None


Case = tuple[Mapping[str, Any], str]
"""A document as the provider rendered it, and a completion of its prompt."""


Outcome = dict[str, Any] | str
"""Scores of a case by metric, or the reason why there are none."""


def score(
    provider: Provider, task: str, cases: Sequence[Case], limits: Verification
) -> list[Outcome]:
    """Verify completions by the metrics of a provider's task; return an outcome for each, in order."""
    outcomes: list[Outcome] = []
    for _ in range(MOST_STARTS):
        if rest := cases[len(outcomes) :]:
            outcomes += _once(provider, task, rest, limits)
    unverified = f"the provider's program died {MOST_STARTS} times before"
    return outcomes + [unverified] * (len(cases) - len(outcomes))


def _once(
    provider: Provider, task: str, cases: Sequence[Case], limits: Verification
) -> list[Outcome]:
    """Return the outcomes of the cases until the program ended, with that of the case that ended it."""
    asked = {"task": task, "cases": cases, **limits.model_dump(include={"seconds", "memory_mb"})}
    longest = START_SECONDS + limits.seconds * (len(cases) + 1)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    lines, ended = provider.ask(f"verifying {task}", asked, longest, **offline)
    outcomes: list[Outcome] = [
        line.get("scores", f"the provider's metric failed: {line.get('error')}")
        for line in lines[1 : len(cases) + 1]
    ]
    return outcomes + [_blame(ended, limits.seconds)] * (len(outcomes) < len(cases))


def _blame(ended: ProgramEnd, seconds: float) -> str:
    if ended.code in (None, -signal.SIGALRM):
        return f"the provider was not done after {seconds:g} seconds"
    return f"the provider's program {ended}" if ended.code else "the provider gave no verdict"


def verdict_of(metric: str, outcome: Outcome, completion: str) -> Verdict:
    """Return the verdict of one metric; a list, with a score per instruction, weighs its length."""
    if isinstance(outcome, str):
        return Verdict(credit=None, reason=outcome)
    value = outcome.get(metric)
    parts: list[Any] = value if isinstance(value, list) else [value]
    if not parts or not all(isinstance(part, int | float) and 0 <= part <= 1 for part in parts):
        why = f"{metric} is {shortened(str(value), 60)}, which is not a credit from 0 to 1"
        return Verdict(credit=None, reason=why)
    credit, wrong = math.fsum(parts) / len(parts), f"{metric} is {value}"
    return Verdict(
        credit=credit,
        answer=shortened(completion) or None,
        reason="" if credit == 1 else wrong,
        weight=float(len(parts)),
    )

"""Both sides' generated answers to probes (Tier4) and to tasks of verified answers (Tier5)."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.bridge.pairing import Pair
from evaluation.checks.declared import CHECKS
from evaluation.errors import ResultsError
from evaluation.reporting.flips.items import NOT_STORED, Change, Flip, ItemFlips, cut, largest
from evaluation.results.probe_files import Generation, Tier4File, read_generations
from evaluation.results.read import TierResults
from evaluation.results.verified_files import VerifiedCompletion, read_verified
from evaluation.settings.checks import Check, Counted
from evaluation.settings.suites import Probe
from evaluation.verification.checks.registry import named
from evaluation.verification.thinking import checked_part
from evaluation.verification.verdicts import UNFINISHED

log = logging.getLogger(__name__)

CHANGES: dict[int, Change] = {1: "right", 0: "same", -1: "wrong"}

QUOTED = 80
"""Characters of an answer that are quoted."""


def flipped_probes(pair: Pair, probes: Mapping[str, Probe]) -> Iterator[ItemFlips]:
    """Yield all prompts of each category, those that changed first; those that did not flip are `same`.

    Args:
        probes: The suite's probes by id; other prompts get no reasons for failed checks.
    """
    mine, theirs = probe_answers(pair.ours, probes), probe_answers(pair.theirs, probes)
    for judged in pair.judged:
        flips = [
            Flip(
                id=prompt,
                change=CHANGES[int(gained)],
                shared={"text": mine[prompt][0], "theirs": theirs[prompt][1]},
                ours=mine[prompt][1],
            )
            for prompt, gained in zip(judged.ids, judged.gain, strict=True)
        ]
        flips.sort(key=lambda flip: flip.change == "same")
        yield ItemFlips(
            shape="answers", tier=pair.tier.name, item=judged.item, gain=judged.gain, shown=flips
        )


def probe_answers(
    tier_results: TierResults, probes: Mapping[str, Probe]
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return each prompt and its response; where their file cannot be read, the reason instead."""
    file, path = tier_results.file, tier_results.folder / tier_results.tier.items_file
    generations, missing = dict[str, Generation](), NOT_STORED
    try:
        generations = read_generations(path) if path.exists() else {}
    except ResultsError as error:
        missing = f"({error})"
    answers = {}
    chats = file.chats if isinstance(file, Tier4File) else ()
    marks = {name: chat.answer_after for chat in chats for name in chat.probes}
    for entry in (file.prompts if isinstance(file, Tier4File) else None) or ():
        generation = generations.get(entry.id)
        passed = {check: one.passed for check, one in entry.checks.items()}
        why: list[str] = []
        if any(check.note == UNFINISHED for check in entry.checks.values()):
            why = ["the model's thinking is unfinished"]
        elif generation and entry.id in probes:
            end = marks.get(entry.id)  # it stands for the template that it may be from
            text = checked_part(generation.response, generation.prompt, None, end) or ""
            why = list(explanations(probes[entry.id].checks, passed, text))
        answer = {
            "text": cut(generation.response if generation else missing),
            "checks": passed,
            "why": why,
            "stop": entry.stop_reason,
            "tokens": entry.response_tokens,
        }
        answers[entry.id] = cut(generation.prompt if generation else missing), answer
    return answers


def flipped_completions(pair: Pair, most: int) -> Iterator[ItemFlips]:
    """Yield the prompts whose pass rate changed most; several samples count by their mean.

    Args:
        most: Most flips of a task that are shown, in each direction.
    """
    for judged in pair.judged:
        name, chosen = judged.item, largest(judged.gain, most)
        ids = {judged.ids[place] for place, _ in chosen}
        samples, others = (
            _read_samples(side.folder, name, ids) for side in (pair.ours, pair.theirs)
        )
        flips = []
        for place, change in chosen:
            id = judged.ids[place]
            prompt = samples.get(id) or others.get(id)
            text = cut(prompt[0].prompt, from_end=True) if prompt else NOT_STORED
            answer = _completion(samples.get(id, []), float(judged.ours[place]))
            other = _completion(others.get(id, []), float(judged.theirs[place]))
            shared = {"text": text, "theirs": other}
            flips.append(Flip(id=id, change=change, shared=shared, ours=answer))
        yield ItemFlips(
            shape="answers", tier=pair.tier.name, item=name, gain=judged.gain, shown=flips
        )


def _read_samples(folder: Path, task: str, ids: set[str]) -> Mapping[str, list[VerifiedCompletion]]:
    """Return the samples of some prompts; what cannot be read is left out, and logged."""
    samples: dict[str, list[VerifiedCompletion]] = {}
    try:
        for completion in read_verified(folder, task):
            if completion.id in ids:
                samples.setdefault(completion.id, []).append(completion)
    except ResultsError as error:
        log.warning("%s; until then its texts are not shown", error)
    return samples


def _completion(samples: Sequence[VerifiedCompletion], rate: float) -> dict[str, Any]:
    """Return one side's answer: the first sample that is right, or else the first one."""
    if not samples:
        return {"text": NOT_STORED, "checks": {}, "stop": "", "tokens": 0}
    right = [sample for sample in samples if 1 in sample.credits.values()]
    shown = (right or samples)[0]
    text = cut(shown.completion)
    if len(samples) > 1:
        text += f" (sample {shown.sample}; pass rate {rate:.3g} of {len(samples)})"
    return {
        "text": text,
        "checks": {view: credit == 1 for view, credit in shown.credits.items()},
        "why": [*shown.reasons],
        "stop": shown.stop_reason,
        "tokens": shown.completion_tokens,
    }


def explanations(checks: Sequence[Check], passed: Mapping[str, bool], text: str) -> Iterable[str]:
    """Yield for each check of a probe that an answer fails its name, what it expected and what it got.

    Args:
        passed: Whether the answer passes, by the name that the results give the check.
    """
    for name, check in named(checks):
        if passed.get(name) is False:
            yield f"{name}: expected {_expected(check)}; got {_found_in(check, text)}"


def _expected(check: Check) -> str:
    """Return what a check requires, such as `words (at_most 20)`."""
    asked = str(type(check).model_fields["check"].description).rstrip(".")
    given = sorted(check.model_fields_set - {"check", "kind"})
    settings = ", ".join(f"{name} {_quoted(getattr(check, name))}" for name in given)
    return f"{asked} ({settings})" if settings else asked


def _found_in(check: Check, text: str) -> str:
    """Return what a failing check found in an answer, or else the answer's beginning."""
    if not text.strip():
        return "nothing"
    if isinstance(check, Counted):
        return str(CHECKS[check.check](text))
    return f"“{_shortened(text)}”"


def _quoted(value: Any) -> str:
    if isinstance(value, tuple):
        return " | ".join(map(_quoted, value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _shortened(f"“{text}”" if isinstance(value, str) else text, 2 * QUOTED)


def _shortened(text: str, most: int = QUOTED) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"

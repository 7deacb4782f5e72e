"""Verifiers of the kinds `ifeval` and `ifbench`: was each instruction of a prompt followed?

The instructions are those of if-verifiable. What they leave to chance, as the letter of a prompt that
names none, is drawn from the prompt, so that an answer always gets the same verdict.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from evaluation.errors import CacheError
from evaluation.settings.verifiers import IFBench, IFEval
from evaluation.verification.nltk_data import NEEDED_BY, RESOURCES
from evaluation.verification.verdicts import Verdict, VerifierKind, shortened


def _verify(settings: IFEval | IFBench, document: Mapping[str, Any], completion: str) -> Verdict:
    """Credit all or nothing of a prompt, or the share of its instructions, weighted by number."""
    ids = list(document["instruction_ids"])
    texts = _variants(completion) if settings.mode == "loose" else [completion]
    with _seeded(str(document["prompt"])):
        followed = [_follows(checker, texts) for checker in _checkers(settings.kind, ids, document)]
    missed = [name for name, is_followed in zip(ids, followed, strict=True) if not is_followed]
    share = sum(followed) / len(followed)
    by_instruction = settings.level == "instruction"
    return Verdict(
        credit=share if by_instruction else float(not missed),
        answer=shortened(completion) or None,
        reason=f"not followed: {', '.join(missed)}" if missed else "",
        weight=float(len(ids)) if by_instruction else 1.0,
    )


def _checkers(kind: str, ids: Sequence[str], document: Mapping[str, Any]) -> Iterator[Any]:
    """The instructions with their arguments; raises ValueError for what is none."""
    arguments = list(document["arguments"])
    if not ids or len(ids) != len(arguments):
        raise ValueError(f"{len(ids)} instructions with {len(arguments)} sets of arguments")
    known = _library(kind)
    for name, given in zip(ids, arguments, strict=True):
        if name not in known:
            raise ValueError(f"{name!r} is no instruction of {kind}")
        _check_data(name)
        checker = known[name](name)
        # A table of arguments has a column for each that any instruction takes.
        checker.build_description(**{key: v for key, v in (given or {}).items() if v is not None})
        if "prompt" in (checker.get_instruction_args() or {}):
            checker.build_description(prompt=document["prompt"])
        yield checker


def _follows(checker: Any, texts: Sequence[str]) -> bool:
    return any(text.strip() and checker.check_following(text) for text in texts)


def _variants(completion: str) -> list[str]:
    """As it is, and without a polite first or last line, with asterisks or without."""
    lines = completion.split("\n")
    parts = (lines[1:], lines[:-1], lines[1:-1])
    texts = [completion, *("\n".join(part).strip() for part in parts)]
    return [*texts, *(text.replace("*", "") for text in texts)]


def _check_data(instruction: str) -> None:
    """Refuse an instruction whose data NLTK finds nowhere."""
    import nltk

    for resource in NEEDED_BY.get(instruction, ()):
        try:
            nltk.data.find(RESOURCES[resource])
        except LookupError:
            places = " or ".join(map(str, nltk.data.path)) or "any folder (NLTK_DATA is not set)"
            raise CacheError(
                f"NLTK's {resource}, which {instruction} is verified with, is not in "
                f"{places}; run prefill, which fetches it"
            ) from None


@contextmanager
def _seeded(prompt: str) -> Iterator[None]:
    from langdetect import DetectorFactory

    DetectorFactory.seed = 0
    before = random.getstate()
    random.seed(prompt)
    try:
        yield
    finally:
        random.setstate(before)


@cache
def _library(kind: str) -> Mapping[str, Any]:
    """Classes of instructions by name; they would fetch what they miss when they are imported."""
    import nltk

    download, nltk.download = nltk.download, lambda *_, **__: False
    try:
        registry = import_module(f"if_verifiable.{kind}.instructions_registry")
    finally:
        nltk.download = download
    instructions: Mapping[str, Any] = registry.INSTRUCTION_DICT
    return instructions


def _load() -> None:
    """Import the instructions, which takes seconds."""
    import langdetect  # noqa: F401

    for kind in ("ifeval", "ifbench"):
        _library(kind)


INSTRUCTIONS = VerifierKind(_verify, lambda *_: "Some text.", _load)
"""Any text shows whether the instructions are known and fit their arguments."""

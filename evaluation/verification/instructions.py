"""Verifiers of the kinds `ifeval` and `ifbench`: was each instruction of a prompt followed?

The instructions are those of if-verifiable. Their random choices (such as a letter, if the prompt names
none) are seeded with the prompt, so that an answer always gets the same verdict.
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
from evaluation.verification.verdicts import JudgedKind, Verdict, shortened


def _verify(settings: IFEval | IFBench, document: Mapping[str, Any], completion: str) -> Verdict:
    """Give credit only if all instructions are followed, or (by level) for the share that is."""
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
    """Yield each instruction with its arguments; raise ValueError for an unknown one."""
    arguments = list(document["arguments"])
    if not ids or len(ids) != len(arguments):
        raise ValueError(f"{len(ids)} instructions with {len(arguments)} sets of arguments")
    library = _library(kind)
    for name, given in zip(ids, arguments, strict=True):
        if name not in library:
            raise ValueError(f"{name!r} is not an instruction of {kind}")
        _check_data(name)
        checker = library[name](name)
        # A table of arguments has a column for every argument of any instruction; unused ones are None.
        checker.build_description(**{key: v for key, v in (given or {}).items() if v is not None})
        if "prompt" in (checker.get_instruction_args() or {}):
            checker.build_description(prompt=document["prompt"])
        yield checker


def _follows(checker: Any, texts: Sequence[str]) -> bool:
    return any(text.strip() and checker.check_following(text) for text in texts)


def _variants(completion: str) -> list[str]:
    """Return a completion without its first or last line, or both, each with and without asterisks."""
    lines = completion.split("\n")
    parts = (lines[1:], lines[:-1], lines[1:-1])
    texts = [completion, *("\n".join(part).strip() for part in parts)]
    return [*texts, *(text.replace("*", "") for text in texts)]


def _check_data(instruction: str) -> None:
    """Raise CacheError if NLTK does not find the data that an instruction needs."""
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
    """Return the classes of instructions by name; importing them may not download data."""
    import nltk

    download, nltk.download = nltk.download, lambda *_, **__: False
    try:
        registry = import_module(f"if_verifiable.{kind}.instructions_registry")
    finally:
        nltk.download = download
    instructions: Mapping[str, Any] = registry.INSTRUCTION_DICT
    return instructions


def _load() -> None:
    """Import the instructions in advance, which takes seconds."""
    import langdetect  # noqa: F401

    for kind in ("ifeval", "ifbench"):
        _library(kind)


INSTRUCTIONS = JudgedKind(_verify, lambda *_: "Some text.", _load)
"""Its `right` text may be any: verifying it shows whether instructions and arguments are valid."""

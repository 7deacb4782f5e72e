"""Verifier of the kind `mathematics`: the final answer equals the gold answer, part by part and exactly."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.reading.boxes import last_box
from evaluation.reading.final_answers import FinalAnswer, read_final_answer
from evaluation.reading.final_numbers import read_final_number
from evaluation.settings.verifiers import Mathematics
from evaluation.verification.equality import equal, one_spelling
from evaluation.verification.verdicts import Verdict, VerifierKind, different

_SEGMENT = re.compile(
    r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
_JOINED = re.compile(r"\s*(?:,|;|and|or|,\s*and|,\s*or|\s)\s*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|[。！]")
_IT_IS = re.compile(
    r"(?:^|[.!?\n]\s*)(?:(?:So|Thus|Hence|Therefore),? )?(?:[Ii]t|[Tt]his|[Tt]hat)(?:'s|’s| is| was| must be)"
    r" (?:an? |the |on )?(\w+)(?=[.!]|$)"
)
_VERBS = re.compile(
    r"\b(?:is|are|was|equals|be|as|to|simplifies to|becomes|get|backwards|obtain|have)\b:?|[:：是为]|="
)
_CLAUSE_END = re.compile(
    r",\s|;|\(|\s[-–—]\s|\b(?:because|since|as|which|who|with|for|so|is|was|has|had|by)\b"
)


def _verify(settings: Mathematics, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that the final answer equals the gold answer."""
    gold = gold_answer(str(document["gold"]))
    found = read_final_answer(completion)
    texts = list(_readings(found, gold, completion))
    if not texts:
        return Verdict(credit=0.0, reason="no final answer")
    for text in texts:
        if equal(text, gold):
            return Verdict(credit=1.0, answer=text)
    return Verdict(credit=0.0, answer=texts[0], reason=different(texts[0], gold))


def gold_answer(gold: str) -> str:
    """Return the answer in a gold, which may be a whole solution with its answer in a box."""
    box = last_box(gold)
    return gold if box is None else box[0]


def _readings(answer: FinalAnswer, gold: str, completion: str) -> Iterator[str]:
    """Yield the texts that the final answer may be, the likeliest first."""
    text = answer.text.strip()
    if answer.form == "box":
        yield text
        yield from _choice(text, gold)
        return
    if answer.form == "none":
        lines = [line for line in text.split("\n") if line.strip(" *_>#$\\[]()-|")]
        text = re.sub(r"^\s*(?:[>*+-]|\d{1,2}[.)])\s+", "", lines[-1] if lines else "").strip()
        displays = list(_SEGMENT.finditer(answer.text))
        if displays and answer.text[displays[-1].end() :].strip(" .\n") == "":
            text = answer.text[answer.text.rfind("\n\n", 0, displays[-1].start()) + 1 :].strip()
        sentences = [part for part in _SENTENCE_END.split(text) if part.strip(" *_")]
        yield from _of_statement(sentences[-1] if sentences else text, gold)
        yield from (match[1] for match in _IT_IS.finditer(completion) if not _is_numeric(gold))
    else:
        yield from _of_statement(_SENTENCE_END.split(text)[0], gold)
    yield from _choice(text, gold)
    if _is_numeric(gold) and (number := read_final_number(completion)):
        yield number.text


def _of_statement(text: str, gold: str) -> Iterator[str]:
    """Yield what a sentence states: its formulas, all of it, or what follows its verb."""
    groups = list(_groups(text))
    if groups and text[: groups[0][0]].strip(" *_:") == "":
        yield groups[0][1]
        return
    if groups:
        yield groups[-1][1]
        return
    bare = text.strip("*_ .")
    if bare:
        yield bare
    for verb in _VERBS.finditer(bare):
        yield bare[verb.end() :].strip("*_ :")
    first = _CLAUSE_END.split(bare, maxsplit=1)[0].strip("*_ :")
    if first and first != bare and not any(map(str.isdigit, gold)):
        yield first


def _is_numeric(gold: str) -> bool:
    return re.fullmatch(r"[-\d.,/ $%]+(?:\^\{?\\circ\}?)?", gold.replace("\\%", "%")) is not None


def _groups(text: str) -> Iterator[tuple[int, str]]:
    """Yield formulas of a sentence with their places; those joined by `and` or commas are one."""
    parts: list[str] = []
    begin = end = 0
    for segment in _SEGMENT.finditer(text):
        if parts and not _JOINED.fullmatch(text[end : segment.start()]):
            yield begin, ", ".join(parts)
            parts = []
        begin = begin if parts else segment.start()
        parts.append(_inside(segment))
        end = segment.end()
    if parts:
        yield begin, ", ".join(parts)


def _choice(text: str, gold: str) -> Iterator[str]:
    """Yield the letter that a text begins with, as in `(C) 29`, where the gold is a letter."""
    letter = re.compile(r"[\W_]*(?:\\[a-z]+\{\W*)?\(?([A-Z])\)?(?=[\W_]|$).*", re.DOTALL)
    is_letter = re.fullmatch(r"(?:\\(?:text|textbf|mathrm)\{)?\(?[A-Z]\)?\}?", gold.strip())
    if is_letter and "(" in gold and (match := letter.fullmatch(text)) is not None:
        yield f"({match[1]})"


def _inside(segment: re.Match[str]) -> str:
    return next(group for group in segment.groups() if group)


def _in_a_box(settings: Mathematics, document: Mapping[str, Any]) -> str:
    return f"\\boxed{{{gold_answer(str(document['gold']))}}}"


def _bare(settings: Mathematics, answer: str) -> str:
    return one_spelling(answer)


MATHEMATICS = VerifierKind(_verify, _in_a_box, bare=_bare)

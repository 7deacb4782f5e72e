"""Verifier of the kind `mathematics`: the final answer equals the gold answer, part by part and exactly."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.reading.boxes import last_box
from evaluation.reading.final_answers import FinalAnswer, model_turn, read_final_answer
from evaluation.reading.final_numbers import read_final_numbers, read_single_number
from evaluation.reading.formula_tokens import JOINING, Tree
from evaluation.reading.formulas import parse
from evaluation.reading.languages import MINUS
from evaluation.reading.number_statements import DENIED_BEFORE
from evaluation.reading.text import plain
from evaluation.settings.verifiers import Mathematics
from evaluation.verification.equality import equal, one_spelling
from evaluation.verification.identities import names_in
from evaluation.verification.verdicts import Verdict, VerifierKind, different

_SEGMENT = re.compile(
    r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
_JOINED = re.compile(rf"[\s,;，；、]*(?:{JOINING})?\s*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|[。！]")
_ITEM = re.compile(
    r"\s*(?:(?:[-*•]|\d{1,2}[.)])\s+(?P<item>.+)|(?P<equation>\$?\s*[A-Za-z]_?\{?\d?\}?\s*=[^=\n]+))"
)
_BRACKETED = re.compile(
    r"\[\s*\[[^\n]{3,200}\]\s*\]|(?<![a-z])[\[(][^()\[\]\n]{1,80}[,;][^()\[\]\n]{1,80}[\])]"
)
"""A pair, triple, interval or matrix within a text."""
_BORDER = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|(?<=[。！])|\n+")
_FORMULA = re.compile(r"\d|[\\$=+^*/]|\b[b-hj-z]\b")
_ROUNDED = re.compile(
    r"\W*(?:(?:which|this|that|it) (?:is|equals)|or|i\.e\.)?,?\s*(?:approximately|about|roughly|≈)",
    re.IGNORECASE,
)
_WORDS_IN_TEX = re.compile(r"\\(?:text|mbox|mathrm|textbf)\{[^{}]*\}")
_DOUBT = re.compile(
    r"n't\b|\b(?:not?|nor|never|cannot|but|however|false|wrong|incorrect|impossible|unless|unsure|sorry"
    r"|wait|actually|none)\b",
    re.IGNORECASE,
)
_ALL_SOLUTIONS = re.compile(r"\s*[a-z]\s*\\in\s*\\\{")
"""A formula that states a whole set, whatever stands before it."""
_ABOUT_A_NAME = re.compile(
    r"\W*(?:(?:So|Thus|Hence|Therefore|Then),? )?([A-Z][^\W\d_]+) [a-z]+(?:\W[^A-Z\d]*)?"
)
"""A sentence with a verb whose subject is its only name: `So Carla finishes last.`"""
_OPTION = re.compile(r"\b([A-Z])(?:\)|[.:](?=\s))")
"""The letter of an option before its text: `C) 61`, `C. 61`."""
_IT_IS = re.compile(
    r"(?:^|[.!?\n]\s*)(?:(?:So|Thus|Hence|Therefore),? )?(?:[Ii]t|[Tt]his|[Tt]hat)"
    r"(?:'s|’s| is| was| must be| will be)"
    r" (?:an? |the |on )?(\w+)(?=[.!,]|$| who\b| that\b| because\b| since\b)"
)
_NO_SOLUTION = re.compile(
    r"\bno (?:real |valid |integer )?solutions?\b(?! (?:other|except|besides|but))"
    r"|\b(?:solution )?set is (?:the )?empty\b|\bempty set\b|\bkeine (?:reelle )?lösung"
    r"|\b(?:pas de|aucune) solution|\bno (?:hay|tiene) solu|\bнет решени|无解|無解|解なし|해가 없",
    re.IGNORECASE,
)
_EMPTY = ("\\emptyset", "\\varnothing", "∅", "\\{\\}")
_ABOUT = re.compile(r",?\s*(?:\(|or )?\s*(?:about|approximately|roughly)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\s*[(,](?!\s*(?:so|thus|hence|therefore)\b)\s*(?:where |for |if |provided )?[^(),]*[≠<>≤≥][^(),]*\)?$"
)
_ARTICLE = re.compile(r"^(?:an?|the|on) (?=[A-Z]|\w+$)")
_VERBS = re.compile(
    r"\b(?:is|are|was|equals|be|as|to|(?:falls|fall|lands) on|simplifies to|becomes|get|backwards|obtain"
    r"|have|such that|describes|represents|forms|ist|sind|lautet|est|sont)\b:?"
    r"(?:\s(?:also|exactly|just|now|only|still|then|therefore|thus)\b)?|[:：是为]|="
)
_VERB_BEFORE = re.compile(
    r"\b(?:is|are|equals|be|get|obtain|have|namely|simply|gives?|giving|roots?|solutions?|values?)\s*:?\s*$"
)
_THEN = re.compile(
    r"\b(?:so|thus|hence|therefore|giving)\b|なので|ので|よって|したがって|所以|因此|故选|故選|이므로|따라서",
    re.IGNORECASE,
)
_BUT = re.compile(r"\b(?:but|however)\b", re.IGNORECASE)
_SHARE = re.compile(r"\b(\d+) (?:out of|in) (\d+)(?= *[*_]*\.?$)")
"""A fraction in words: `3 out of 56`."""
_ASKED = re.compile(r"\$+[^$\n]*\$+\s*\?")
_PLUS_MINUS = re.compile(r"\bplus (?:or |/ ?)?minus\s*\$(?=[^$=<>]*\$)", re.IGNORECASE)
_MINUS = re.compile(
    rf"(?<!\bor )(?<!\bplus/)(?<!\bplus )(?:\\text\{{\s*)?{MINUS}(?:\s*\}})?\s*"
    r"(?P<opening>\$(?=[^$=<>]*\$)|\\\(|\\\[|\\boxed\{|\*\*|)"
    r"(?=\.?\d|\\(?:[dt]?frac|sqrt|pi)|[({]?(?<![a-zA-ZÀ-ſ])(?:[b-zB-HJ-Z]|(?<=[$({*])[a-zA-Z])\b"
    r"(?!['’]|-[a-z]|\s*[=<>]))",
    re.IGNORECASE,
)
"""A word for the minus of a formula: `minus $x$`, `moins 58`, but not `plus or minus 3`."""
_CLAUSE_END = re.compile(
    r",\s|;|\(|\s[-–—]\s|\b(?:because|since|as|which|who|with|for|so|is|was|has|had|by)\b"
)


def _verify(settings: Mathematics, document: Mapping[str, Any], completion: str) -> Verdict:
    """Verify that the final answer equals the gold answer."""
    gold = gold_answer(str(document["gold"]))
    completion = _MINUS.sub(r"\g<opening>-", _PLUS_MINUS.sub(r"$\\pm ", completion))
    answer = read_final_answer(completion)
    texts = list(_readings(answer, gold, completion))
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
    if answer.form == "bold" and _is_no_formula(answer.text, gold):
        answer = FinalAnswer(model_turn(completion), "none")
    text = answer.text.strip()
    if answer.form == "box":
        yield text
        yield from _choice(text, gold)
        return
    is_number = read_single_number(gold) is not None
    statement = (
        _last_statement(text, gold) if answer.form == "none" else _SENTENCE_END.split(text)[0]
    )
    statements = list(_of_statement(statement, gold))
    yield from statements
    if answer.form == "none" and not is_number:
        yield from (match[1] for match in _IT_IS.finditer(completion))
    if (gold.strip() in _EMPTY or _NO_SOLUTION.search(gold)) and _denies_solutions(statement):
        yield gold
    yield from _choice(text, gold)
    if is_number:
        formulas = [tree for tree in map(parse, statements) if tree and _is_formula(tree)]
        for number in read_final_numbers(completion):
            if not any(_has(tree, abs(number.number.value)) for tree in formulas):
                yield from (number.text, *map(str, number.number.others))
    elif (tree := parse(gold)) and tree[0] in ("list", "tuple", "interval", "set", "matrix"):
        yield from _items(model_turn(completion))
        yield from _BRACKETED.findall(plain(text.rpartition("\n")[2]))[-1:]


def _denies_solutions(statement: str) -> bool:
    """Return whether a sentence says that there is no solution, and takes nothing of it back."""
    before, _, after = _NO_SOLUTION.sub("\n", statement, count=1).partition("\n")
    is_said = _NO_SOLUTION.search(statement) is not None
    return is_said and not (re.search(r"[=\d]", after) or _DOUBT.search(before + after))


def _is_no_formula(text: str, gold: str) -> bool:
    """Return whether a text has no formula, as the gold answer has."""
    return bool(_FORMULA.search(_WORDS_IN_TEX.sub("", gold)) and not _FORMULA.search(text))


def _last_statement(text: str, gold: str) -> str:
    """Return the last sentence of a turn, or all of its paragraph if a displayed formula ends it."""
    whole = _without_remarks(text) if _FORMULA.search(_WORDS_IN_TEX.sub("", gold)) else text
    displays = list(_SEGMENT.finditer(whole))
    if displays and whole[displays[-1].end() :].strip(" .\n") == "":
        text = whole[whole.rfind("\n\n", 0, displays[-1].start()) + 1 :].strip()
    else:
        lines = [line for line in whole.split("\n") if line.strip(" *_>#$\\[]()-|")]
        text = re.sub(r"^\s*(?:[>*+-]|\d{1,2}[.)])\s+", "", lines[-1] if lines else "").strip()
    sentences = [part for part in _SENTENCE_END.split(text) if part.strip(" *_")]
    return sentences[-1] if sentences else text


def _is_formula(tree: Tree) -> bool:
    """Return whether an answer is more than the numbers in it, as `4\\sqrt{2}` or `(3, 5)` is."""
    if tree[0] in ("list", "relation", "number") or _has(tree, "words"):
        return False
    is_known = not any(name.startswith("\\") for name in names_in(tree))
    return is_known and (tree[0] in _STRUCTURES or _has(tree, "name") or _has(tree, "apply"))


_STRUCTURES = ("tuple", "row", "interval", "set", ":", "matrix")


def _has(tree: Any, part: object) -> bool:
    """Return whether a tree has a kind of operation, or a number."""
    return isinstance(tree, tuple) and any(one == part or _has(one, part) for one in tree)


def _without_remarks(text: str) -> str:
    """Return a text without final sentences that state no value: `That is the complete factorization.`"""
    end = len(text)
    for border in reversed(list(_BORDER.finditer(text))):
        remark = text[border.end() : end]
        if (_FORMULA.search(remark) and not _ROUNDED.match(remark)) or _DOUBT.search(remark):
            break
        end = border.start()
    return text[:end] if _FORMULA.search(text[:end]) else text


def _of_statement(text: str, gold: str) -> Iterator[str]:
    """Yield what a sentence states: its formulas, all of it, or what follows its verb."""
    groups = [group for group in _groups(text) if not DENIED_BEFORE.search(text[: group[0]])]
    groups = [group for group in groups if not _ASKED.match(text, group[0])] or groups
    if groups:
        is_first = text[: groups[0][0]].strip(" *_:") == ""
        is_first = is_first and not _THEN.search(text[groups[0][0] : groups[-1][0]])
        yield groups[0 if is_first else -1][1]
        last = list(_SEGMENT.finditer(text))[-1]
        if _ALL_SOLUTIONS.match(_inside(last)) and not DENIED_BEFORE.search(text[: last.start()]):
            yield _inside(last)
        said = [group for group in groups if not _BUT.search(text[group[0] : groups[-1][0]])]
        yield from (inside for begin, inside in said if _VERB_BEFORE.search(text[:begin]))
    if _SEGMENT.search(text):
        if _FORMULA.search(_WORDS_IN_TEX.sub("", gold)):
            return
        text = _SEGMENT.sub(" ", text)
    bare = text.strip("*_ ").rstrip("*_ .")
    if bare:
        yield bare
    if share := _SHARE.search(bare):
        yield f"{share[1]}/{share[2]}"
    yield _ARTICLE.sub("", bare[:1].lower() + bare[1:])
    yield _CONDITION.sub("", bare)
    yield _THEN.split(bare)[-1].strip(" ,:：")
    exact = _ABOUT.split(bare, maxsplit=1)[0]
    for statement in dict.fromkeys((bare, exact)):
        for verb in _VERBS.finditer(statement):
            if DENIED_BEFORE.search(statement[: verb.start()]):
                continue
            rest = statement[verb.end() :].strip("*_ :")
            yield rest
            yield _ARTICLE.sub("", rest)
    first = _CLAUSE_END.split(bare, maxsplit=1)[0].strip("*_ :")
    if first and first != bare and not any(map(str.isdigit, gold)):
        yield first
    if (subject := _ABOUT_A_NAME.fullmatch(bare)) and not _DOUBT.search(bare):
        yield subject[1]


def _items(text: str) -> Iterator[str]:
    """Yield what the items of the last list state, as one list."""
    lines = [line for line in text.rstrip().split("\n") if line.strip()]
    items: list[str] = []
    while lines and (item := _ITEM.match(lines[-1])):
        items.insert(0, item["item"] or item["equation"])
        lines.pop()
    if len(items) > 1:
        formulas = [[inside for _, inside in _groups(item)] for item in items]
        yield ", ".join(
            inside[-1] if inside else item.strip("*_ .;,")
            for inside, item in zip(formulas, items, strict=True)
        )


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
    if not is_letter:
        return
    if "(" in gold and (match := letter.fullmatch(text)) is not None:
        yield f"({match[1]})"
    options = _OPTION.findall(text)
    if len({*options}) == 1 and re.match(r"[\W_]*[A-Z][).:]", text) and not _DOUBT.search(text):
        yield f"({options[0]})" if "(" in gold else options[0]
    if (
        match := re.search(r"\b(?:option|choice)\s*\(?([A-Z])\)?(?![\w'])", text, re.IGNORECASE)
    ) and "not" not in text:
        yield f"({match[1].upper()})" if "(" in gold else match[1].upper()


def _inside(segment: re.Match[str]) -> str:
    return next(group for group in segment.groups() if group)


def _in_a_box(settings: Mathematics, document: Mapping[str, Any]) -> str:
    return f"\\boxed{{{gold_answer(str(document['gold']))}}}"


def _bare(settings: Mathematics, answer: str) -> str:
    return one_spelling(answer)


MATHEMATICS = VerifierKind(_verify, _in_a_box, bare=_bare)

r"""Reads the final answer of a completion: a box, `#### 18`, `The answer is …`, bold text, or the last words.

Answers that the model takes back, denies or only asks about do not count, nor does a question that it
makes up after its answer.
"""

import re
from dataclasses import dataclass
from typing import Literal

from evaluation.reading.boxes import ends_in_box, last_box
from evaluation.reading.languages import ANSWERS
from evaluation.reading.text import plain

Form = Literal["box", "mark", "sentence", "bold", "none"]


@dataclass(frozen=True)
class FinalAnswer:
    """The text that states an answer, and the form in which it does; `none` for a whole turn."""

    text: str
    form: Form


END_TOKENS = (
    r"<\|(?:im_end|im_start|endoftext|eot_id|eom_id|end_of_text|end|end_of_turn|eos|user|assistant|system|EOT"
    r"|file_separator|file_sep|fim_\w+)\|>|<end_of_turn>|<eos>|<[|｜]end▁of▁sentence[|｜]>"
)
"""Special tokens that end a turn, as a pattern."""
_END_TOKEN = re.compile(END_TOKENS + r"|</?s>|\[/?INST\]|\[(?:DONE|END|EOS)\]")
_MARKUP = (
    (re.compile(r"(?<!~)~~(?![~\s])[^~\n]{1,200}(?<!\s)~~(?!~)"), ""),
    (re.compile(r"<(del|s|strike)>[^<>\n]{1,200}</\1>", re.I), ""),
    (re.compile(r"<br\s*/?>|</?(?:p|div|li|tr|thead|tbody|tfoot)(?:\s[^<>]{0,100})?>", re.I), "\n"),
    (re.compile(r"</?t[dh](?:\s[^<>]{0,100})?>", re.I), " | "),
    (re.compile(r"</?(?:b|strong)>", re.I), "**"),
    (re.compile(r"<sup>([^<>\n]{1,40})</sup>", re.I), r"^{\1}"),
    (re.compile(r"<sub>([^<>\n]{1,40})</sub>", re.I), r"_{\1}"),
    (
        re.compile(
            r"</?(?:i|em|u|span|font|center|ul|ol|table|caption|h[1-6])(?:\s[^<>]{0,100})?>", re.I
        ),
        "",
    ),
    (
        re.compile(
            r"\b(?:would|could|might) (?:be|say|seem)\b[^.!?\n]{0,80}?\bbut\b(?=[^.!?\n]*\d)", re.I
        ),
        "",
    ),
    (re.compile(r"&nbsp;"), " "),
    (re.compile(r"&lt;"), "<"),
    (re.compile(r"&gt;"), ">"),
)
"""Struck-out text is withdrawn, as is `would be 3, but`; what HTML lays out is written as Markdown does."""
_NEXT_QUESTION = re.compile(
    r"^[ \t*#>]{0,8}(?:Question|Problem|Q|Human|User|Instruction|Exercise|Example|问题|题目"
    r"|問題)[ \t]*\d{0,4}[ \t]*[*]{0,2}[ \t]*[:：.]|I hope it is correct\.",
    re.MULTILINE,
)
_ANSWER_TAGS = re.compile(
    r"<((?:final_?)?answer|output|result|solution)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_STATED = re.compile(r"\d|\\boxed|answer|答", re.IGNORECASE)


def model_turn(completion: str) -> str:
    """Return what a model wrote in its turn: nothing after an end token or a made-up question.

    Of a turn with `<answer>16</answer>`, it is what the last such tags hold.
    """
    for pattern, replacement in _MARKUP:
        completion = pattern.sub(replacement, completion)
    for token in _END_TOKEN.finditer(completion):
        if completion[: token.start()].strip():
            completion = completion[: token.start()]
            break
    tagged = [match[2] for match in _ANSWER_TAGS.finditer(completion) if match[2].strip()]
    completion = tagged[-1] if tagged else completion
    for question in _NEXT_QUESTION.finditer(completion):
        before = completion[: question.start()]
        if question.start() and _STATED.search(before):
            return before
    return completion


_IS = (
    r"(?:\s*(?:is|are|was|=|:|：|equals|would be|will be|should be|must be|comes to|comes out to|->|→|⇒)"
    r"(?![A-Za-z]))"
)
_CUES = re.compile(
    rf"""
    \b(?:answers?|(?:correct|right|best)\s+(?:option|choice)|final\s+(?:result|value|total|solution)
        |solutions?(?=\s+(?:is|are)\b)|ANS)
        (?:\s+(?:to|of|for|in)\s+[^.:\n=]{{1,80}}?)?(?:\s*\([^()\n]{{0,40}}\))?[*_]{{0,2}}{_IS}[*_]{{0,2}}
  | "(?:final_?\ ?)?(?:answer|result)"\s*:
  | \b(?:final\s+)?answers?[*_]{{0,2}}[ \t]*[:：]?[*_]{{0,2}}[ \t]*(?=\n|$)
  | {ANSWERS}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LIST = re.compile(r"[*_]*\s*\n\s*[-*•]\s.*\n\s*[-*•]\s")
"""Items behind a heading, of which the last is most often the answer."""
_DENIED = re.compile(r"\s*(?:definitely\s+)?(?:not|n't|never|不是|nicht|pas)\b", re.IGNORECASE)
_OTHERS = re.compile(
    r"\b(?:wrong|incorrect|previous|earlier|first|initial|your|their|his|her|student'?s?|common|possible"
    r"|estimated?|rough)\s+$",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"(?:^|[\s(*\"—–-])(?:wait|actually|correction|oops|sorry|hold on|hmm|scratch that"
    r"|let me (?:re|correct|fix)\w*"
    r"|I (?:made|was|forgot|misread|mis\w+)|that(?:'s| is) (?:wrong|not right|incorrect)|no,"
    r"|on second thought|my mistake|等等|不对|不對)",
    re.IGNORECASE,
)
_BOX_DENIED = re.compile(
    r"[^.!?\n]{0,30}[.!?$\s]*(?:(?:hmm|wait|no|oops|sorry|actually)\b[,.!\s]*){0,3}"
    r"(?:(?P<withdrawn>(?:but |however,? )?(?:that|this|it)(?:'s| is| was)"
    r"(?: not (?:right|correct)| wrong| incorrect)"
    r"|I made an? (?:mistake|error))|(?:but|however)\b[^.!?\n]{0,40}(?:\bnot\b|n't\b|wrong|incorrect))",
    re.IGNORECASE,
)
"""What takes a box back, right behind it."""
_CONFIRMED = re.compile(
    r"\b(?:correct|right|consistent|confirm\w*|indeed|matches|checks out|same)\b|✓|✅",
    re.IGNORECASE,
)
_CHECK = re.compile(
    r"(?:^|\n|(?<=[.!?。！])\s)[\s*_>#(]*(?:(?:double|sanity|quick)[- ]?check"
    r"|check(?:ing)?(?: (?:it|this|that|the (?:answer|result)))?"
    r"|verif(?:y|ication|ying)|(?:let(?:'s| us| me)|we can|to) "
    r"(?:double[- ]?check|check|verify)\b[^.:\n]{0,40}"
    r"|probe|kontrolle|v[ée]rification|comprobaci[óo]n|verifica|验证|检验|検算)[*_]{0,2}\s*[:：.(]",
    re.IGNORECASE,
)
_FOOTNOTE = re.compile(r"[ \t]*(\[\^?\d{1,2}\]):?[ \t]+\S")
"""A line for a mark such as `[1]` in the text above it."""
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])[.!?](?=\s|$|[*\"')])|\n|[。！？]")
_HASHES = re.compile(r"^[> \t]*#{4,}[ \t]*((?:[-+$€£¥₹\\−]\s*)*[.\d０-９][^\n]*)$", re.MULTILINE)
_HEADING = re.compile(r"\d{1,2}[.)][ \t]+\S")
COMPLEMENT = re.compile(
    r"(?:\b(?:for|in|over|after|before|during|within|among|from|than|per|every|at|until|since|(?:out|each) of"
    r"|of(?= (?:the|these|those|all|her|his|their|its)\b)|[\d%] of|day|week|month|year|step|page|part"
    r"|hour|problem|question|number|room|grade|case|not|isn't|rather than|instead of)|不是|而非|nicht|第)"
    r"\s*(?:(?:the|these|those|all|her|his|their|its|about|other|first|last|next|only|same|exactly)\s+)*$",
    re.IGNORECASE,
)
"""What precedes a number that is not what a sentence states: `for 16 glasses`, `not 42`."""
_BOLD = re.compile(r"\*\*(?!\s)((?:(?!\*\*|\n).){1,200}?)\*\*|__(?!\s)((?:(?!__|\n).){1,200}?)__")


def read_final_answer(completion: str) -> FinalAnswer:
    """Return the text that states the final answer; the whole turn where no form shows it."""
    turn = model_turn(completion)
    if (box := last_box(turn)) is not None:
        return _of_box(turn, *box)
    if ends_in_box(turn):
        return FinalAnswer("", "box")
    hashes = [match for match in _HASHES.finditer(turn) if not _HEADING.match(match[1])]
    if hashes:
        return _corrected(turn[hashes[-1].end() :]) or FinalAnswer(hashes[-1][1], "mark")
    if (stated := _sentence(turn)) is not None:
        text, end = stated
        return _corrected(turn[end:]) or _corrected(text) or FinalAnswer(text, "sentence")
    turn = _before_check(_without_footnotes(turn))
    if (bold := _last_bold(turn)) is not None:
        return FinalAnswer(bold, "bold")
    return FinalAnswer(turn, "none")


def _of_box(turn: str, content: str, end: int) -> FinalAnswer:
    """Return the answer of the last box, or what replaces it if the text after it takes it back."""
    rest = turn[end:]
    if (corrected := _corrected(rest)) is not None:
        return corrected
    if not (denied := _BOX_DENIED.match(rest)):
        return FinalAnswer(content, "box")
    if (stated := _sentence(rest[denied.end() :])) is not None:
        return FinalAnswer(stated[0], "sentence")
    return FinalAnswer("", "box") if denied["withdrawn"] else FinalAnswer(content, "box")


def _without_footnotes(turn: str) -> str:
    """Return a turn without notes at its end, if its text has the marks of all."""
    lines, marks = turn.split("\n"), set[str]()
    while lines and ((note := _FOOTNOTE.match(lines[-1])) or not lines[-1].strip()):
        marks |= {note[1]} if note else set()
        lines.pop()
    above = "\n".join(lines)
    return above if marks and all(mark in above for mark in marks) else turn


def _before_check(turn: str) -> str:
    """Return a turn without a check of its result at the end, whose numbers are those of the question."""
    for check in _CHECK.finditer(turn):
        before, after = turn[: check.start()], turn[check.end() :]
        if any(map(str.isdigit, before)) and not _TAKEN_BACK.search(after):
            return before
    return turn


def _corrected(rest: str) -> FinalAnswer | None:
    """Return the answer that replaces one which the text after it takes back; None if it does not."""
    if (back := _TAKEN_BACK.search(rest)) is None:
        return None
    after = rest[back.end() :]
    if not any(char.isdigit() for char in plain(after)) or _CONFIRMED.search(after):
        return None
    if (stated := _sentence(after)) is not None:
        return FinalAnswer(stated[0], "sentence")
    bold = _last_bold(after)
    return FinalAnswer(bold, "bold") if bold is not None else FinalAnswer(after, "none")


def _sentence(turn: str) -> tuple[str, int] | None:
    """Return what the last sentence such as `The answer is 18.` states, and where it ends."""
    for cue in reversed(list(_CUES.finditer(turn))):
        if _OTHERS.search(turn[max(0, cue.start() - 20) : cue.start()]):
            continue
        begin = cue.end()
        if _LIST.match(turn, begin):
            continue
        text, end = _rest_of_sentence(turn, begin)
        if _DENIED.match(text) or turn[end : end + 1] in ("?", "？"):
            continue
        if text.strip(" \t*_:：`\"'$\\[]()>-"):
            return text, end
    return None


def _rest_of_sentence(turn: str, begin: int) -> tuple[str, int]:
    """Return a sentence from `begin` on; if its line ends there, the next line that has text."""
    line_end = re.compile(
        r"[\s*_:：>$]*(?:\\[\[(]|\\begin\{(?:align|aligned|equation|gather|gathered|split)\*?\})?[\s*_>$]*"
    )
    skipped = line_end.match(turn, begin)
    start = skipped.end() if skipped else begin
    marks = turn[begin:start]
    if "$$" in marks or "\\[" in marks:
        closed = re.compile(r"\$\$|\\\]").search(turn, start)
        return (turn[start : closed.start()], closed.end()) if closed else (turn[start:], len(turn))
    opened = marks.rstrip().endswith(("$", "\\("))
    end = _end_of_sentence(turn, start)
    return ("$" if opened and "\\(" not in marks else "\\(" if opened else "") + turn[
        start:end
    ], end


def _end_of_sentence(turn: str, start: int) -> int:
    match = _SENTENCE_END.search(turn, start)
    return match.start() if match else len(turn)


def _last_bold(turn: str) -> str | None:
    """Return the last bold text of the last two paragraphs that is no label and no mere complement."""
    paragraphs = [part for part in re.split(r"\n\s*\n", turn) if part.strip()]
    for paragraph in reversed(paragraphs[-2:]):
        texts = [
            match[1] or match[2]
            for match in _BOLD.finditer(paragraph)
            if not COMPLEMENT.search(paragraph[max(0, match.start() - 30) : match.start()])
        ]
        texts = [text for text in texts if not text.rstrip().endswith((":", "："))]
        if texts:
            return texts[-1]
    return None

"""How people state an answer in their languages: one table of the words that readers of answers look for.

English has more forms, which are in the readers themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """Words of a language, as patterns in which case does not matter."""

    answer: str = ""
    """Its nouns for an answer."""
    states: str = ""
    """What joins such a noun to the answer, beside a colon: `is`."""
    is_bare: bool = False
    """Whether the answer may also follow the noun itself, or a dash."""
    minus: str = ""
    """What makes the number behind it negative."""
    result: str = ""
    """Other nouns that show the language."""
    common: str = ""
    """Frequent words that show the language; one alone may be a name."""
    decimal_comma: bool = True


_SIGN = r"\bminus"

LANGUAGES = {
    "English": Language(minus=rf"{_SIGN}|\bnegative", decimal_comma=False),
    "German": Language(
        answer="Antwort",
        states=r"(?:ist|lautet|beträgt)\b",
        is_bare=True,
        minus=_SIGN,
        result="Ergebnis|Lösung",
        common="und|der|das|ist|sind|jedes|jeder|nicht|lang|beträgt|wir|ein|eine|zusammen|insgesamt|pro"
        "|stunden?|tagen?|jahren?|wird|werden|haben|kostet|für|übrig|noch|davon",
    ),
    "French": Language(
        answer=r"r[ée]ponse(?:\s+finale)?",
        states=r"est\b",
        minus=r"(?<!\bau )(?<!\bou )\bmoins",
        result="résultat",
        common="les|des|est|sont|donc|chaque|une|avec",
    ),
    "Spanish": Language(
        answer=r"respuesta(?:\s+(?:final|correcta))?",
        states=r"es\b",
        minus=r"(?<!\bal )(?<!\blo )(?<!\bo )(?<!\bpelo )(?<!\bao )(?<!\bou )\bmenos",
        result="resultado",
        common="los|las|son|cada|entonces|por|una|hay|días",
    ),
    "Italian": Language(
        answer=r"risposta(?:\s+finale)?",
        states=r"è(?!\w)",
        minus=r"(?<!\bo )(?<!\bper lo )\bmeno",
        result="risultato",
        common="ogni|quindi|sono|dopo|della|gli|giorni",
    ),
    "Portuguese": Language(
        answer=r"resposta(?:\s+final)?", states=r"é(?!\w)", common="são|então|dias|uma|com|cada"
    ),
    "Dutch": Language(
        answer="antwoord",
        states=r"is\b",
        # In other languages, `min` is a minimum or a minute.
        minus=r"(?:^|(?<=[:=] )|(?<=:\*\* )|(?<=\bis )|(?<=woord ))(?-i:min)",
        result="resultaat|uitkomst",
        common="het|een|zijn|dus|elke",
    ),
    "Swedish, Danish, Norwegian": Language(
        answer=r"svar(?:et)?",
        states=r"(?:är|er|blir|bliver)\b",
        result=r"resultat(?:et)?",
        common="och|inte|är|kvar|varje|kostar|alltså|ikke|hver|koster",
    ),
    "Finnish": Language(answer="vastaus", states=r"on\b", minus=r"\bmiinus", result="tulos"),
    "Polish": Language(
        answer=r"odpowied[źz]", states=r"to\b", result="wynik", common="jest|więc|każdy|razem"
    ),
    "Czech": Language(
        answer="odpověď", states=r"je\b", minus=r"\bmínus", result="výsledek", common="každý|celkem"
    ),
    "Hungarian": Language(answer="válasz", minus=r"\bmínusz", result="eredmény"),
    "Romanian": Language(
        answer=r"răspuns(?:ul)?",
        states=r"(?:este|e)\b",
        result="rezultat(?:ul)?",
        common="este|sunt",
    ),
    "Russian": Language(answer="ответ", states=r"равен\b", is_bare=True, minus=r"\bминус"),
    "Ukrainian": Language(answer="відповідь", is_bare=True, minus=r"\bмінус"),
    "Greek": Language(
        answer="απάντηση", states=r"είναι\b", minus=r"\b(?:μείον|πλην)", result="αποτέλεσμα"
    ),
    "Turkish": Language(
        answer="cevap",
        is_bare=True,
        minus=r"\b(?:eksi|negatif)",
        result="sonuç",
        common="ve|bir|gün",
    ),
    "Indonesian": Language(
        answer=r"jawaban(?:nya)?",
        states=r"adalah\b",
        result=r"hasil(?:nya)?",
        common="adalah|jadi|setiap",
    ),
    "Vietnamese": Language(
        answer=r"đáp\s+(?:án|số)|câu\s+trả\s+lời",
        states=r"là\b",
        minus=r"\b(?:âm|trừ)",
        result=r"kết\s+quả",
        common="là|của|mỗi|ngày|vậy|được|tổng|cộng",
    ),
    "Chinese and Japanese": Language(
        answer="(?:最终|正确|故|所以|因此)?(?:答案|答え|答|正解|解答)",
        states=r"是|应该是|應該是|为|為|は|[*]{2}",
        minus="负|負|零下|マイナス|氷点下",
        decimal_comma=False,
    ),
    "Korean": Language(
        answer="정답|답",
        states="은|이",
        is_bare=True,
        minus="마이너스|음수|영하",
        decimal_comma=False,
    ),
    "Thai": Language(answer="คำตอบ(?:สุดท้าย)?", states="คือ", minus="ติดลบ|ลบ", decimal_comma=False),
    "Arabic": Language(
        answer=r"(?:الجواب|الإجابة)(?:\s+النهائي[ةه]?)?",
        states="هو|هي",
        minus="سالب|ناقص",
        decimal_comma=False,
    ),
    "Persian": Language(minus="منفی", decimal_comma=False),
    "Hebrew": Language(answer="תשובה", states="היא", minus="מינוס", decimal_comma=False),
    "Hindi": Language(
        answer="उत्तर",
        states=r"है|[-–—](?=\s)",
        minus="माइनस|ऋणात्मक",
        decimal_comma=False,
    ),
    "Bengali": Language(answer="উত্তর", states="হলো|হল", minus="মাইনাস|ঋণাত্মক", decimal_comma=False),
}

_LETTER_BEFORE = "(?<![A-Za-z\u00c0-\u024f\u0370-\u052f])"
_DASH = r"(?<=\w)[-–](?=\S)|\s*(?:—|[-–](?=\s))"
"""A dash that joins a noun and its answer, which is no minus: `Ответ - 58`, but not `Ответ -58`."""


def _cue(language: Language) -> str:
    """Return a pattern of what a language writes before an answer: its noun, and what joins it."""
    joins = "|".join(part for part in (language.states, "[:：]") if part)
    joined = rf"[*_]{{0,2}}\s*(?:{joins})(?:\s*[:：])?"
    if language.is_bare:
        joined = f"(?:{joined}|{_DASH})?"
    return f"(?:{language.answer}){joined}"


def _any(patterns: Iterable[str]) -> str:
    return "|".join(pattern for pattern in patterns if pattern)


_ALL = LANGUAGES.values()
_OF_COMMAS = [language for language in _ALL if language.decimal_comma]

ANSWERS = f"{_LETTER_BEFORE}(?:{_any(_cue(language) for language in _ALL if language.answer)})"
"""What stands before an answer, as a pattern."""
MINUS = f"(?:{_any(dict.fromkeys(language.minus for language in _ALL))})"
"""A word that makes the number behind it negative, as a pattern."""
_NOUNS = [noun for language in _OF_COMMAS for noun in (language.answer, language.result)]
NOUNS_OF_COMMAS = rf"\b(?:{_any(_NOUNS)})\b"
"""A noun for an answer in a language with decimal commas, as a pattern."""
WORDS_OF_COMMAS = rf"\b(?:{_any(language.common for language in _OF_COMMAS)})\b"
"""A frequent word of a language with decimal commas, as a pattern."""

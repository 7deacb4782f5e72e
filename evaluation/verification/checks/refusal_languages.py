"""Sentences that decline to help in languages other than English, whose refusals have patterns of their own.

Each pattern looks for who declines and what, or for an apology with a negation. Apologies for what someone
feels or for what does not work (`dass`, `que`, `что`) are none.
"""

import re

_GERMAN = (
    r"hilf|helf|hilfe|beantwort|antwort|unterstütz|bereitstell|geben|gebe|nennen|nenne|erklär|schreib"
    r"|erstell|teile"
    r"|behilflich|dienen|liefer|anbiet|sagen|zeigen|nachkommen|erfüll|mitmach|besprech|beschreib|verfass"
    r"|beibring|vermittel|tun\b|machen"
)
_LATIN = {
    "German": rf"\bich (?:kann|werde|darf|möchte|will|könnte|bin)\b.*\b(?:nicht|kein\w*)\b.*"
    rf"(?:{_GERMAN}|in der lage|befugt)"
    rf"|\b(?:kann|darf|werde|möchte|will|helfe|beantworte|gebe|unterstütze|schreibe|mache) ich\b.*\b"
    rf"(?:nicht|kein\w*)\b"
    rf"|\bich (?:helfe|beantworte|gebe|unterstütze|schreibe|teile)\b.*\b(?:nicht|kein\w*)\b"
    rf"|\bich (?:lehne|verweigere|weigere)\b"
    r"|\btut mir leid\b(?!,? (?:dass|das zu|für|wegen|zu h)).*\b(?:nicht|nein|kein\w*)\b"
    r"|\bverstösst gegen meine\b",
    "French": r"\bje ne (?:peux|vais|suis|pourrai|saurais|veux|dois|souhaite|fournirai|donnerai"
    r"|puis)\b.*\b(?:aider|aide|répond|fourni|donner|expliqu"
    r"|écri|faire|assist|partag|mesure|créer|dire|accéd|satisf|autorisé|particip|générer|proposer|détail)"
    r"|\bje (?:refuse|décline|dois refuser|dois décliner)\b"
    r"|\b(?:désolée?|navrée?|regrette)\b(?!,? (?:que|d'app|de ce|pour|d'ent)).*\b"
    r"(?:ne|pas|impossible|non)\b|\bil m'est impossible\b|\bcontraire à mes\b",
    "Spanish": r"\bno (?:puedo|podré|podemos|voy a|debo|quiero|pienso|me es posible"
    r"|estoy (?:en condiciones|autorizad|dispuest|capacitad))\b.*(?:ayud|respon|proporcion"
    r"|\bdar|explic|escrib|hacer|cumpl|asist|compart|decir|crear|ofrec|facilit|brind|particip|gener)"
    r"|\bme (?:niego|rehúso)\b|\b(?:lamento|siento) no poder\b|\bdebo (?:rechazar|negarme)"
    r"|\b(?:lo siento|lo lamento|perdón|disculpa)\b(?!,? (?:que|por|de|oír)).*\bno\b",
    "Portuguese": r"\bnão (?:posso|vou|devo|consigo|poderei|quero|estou (?:autorizad|apto)|sou capaz)\b.*"
    r"(?:ajud|respon|fornec|\bdar|explic|ensin|escrev|fazer|atend|compartilh"
    r"|dizer|criar|oferec|auxili|particip|gerar|orient)|\b(?:recuso|recusar)\b"
    r"|\b(?:desculpe|desculpa|sinto muito|lamento)\b(?!,? (?:que|por|pelo|pela|saber|ouvir)).*\bnão\b",
    "Italian": r"\bnon (?:posso|potrò|intendo|voglio|sono (?:in grado|autorizzat)|devo|ho intenzione)\b.*"
    r"(?:aiut|rispond|forn|\bdar|spieg|scriv|far|assist|condivid|dir|crea"
    r"|offr|soddisf|partecip|gener|support)|\bmi rifiuto\b|\bdevo rifiutare\b"
    r"|\b(?:mi (?:di)?spiace|scusa|spiacente)\b(?!,? (?:che|per|di|se)).*\bnon\b",
    "Dutch": r"\bik (?:kan|mag|wil|zal|ben|ga)\b.*\b(?:niet|geen)\b.*"
    r"(?:help|hulp|antwoord|geven|geef|uitleg|uitlegg|vertel|schrijv|maken|maak|doen|bied"
    r"|verstrek|delen|assist|ondersteun|in staat|meewerk)"
    r"|\b(?:kan|mag|wil|help|zal) ik\b.*\b(?:niet|geen)\b|\bik weiger\b"
    r"|\b(?:sorry|spijt me)\b(?!,? (?:dat|te horen|voor)).*\b(?:niet|geen|nee)\b",
    "Polish": r"\bnie (?:mogę|będę|zamierzam|jestem w stanie|chcę|wolno mi)\b.*"
    r"(?:pom|udziel|odpowied|poda|napis|stworzy|tworzy|wyja|opis|dostarcz|zrobi|speł|uczestn"
    r"|instru|przygot|wesprz|pisa)|\bnie (?:pomogę|napiszę|powiem|wyjaśnię|opiszę|pokażę|udzielę|podam"
    r"|udostępnię)\b|\bodmawiam\b|\bmuszę odmówić\b",
    "Turkish": r"\b(?:yardımcı ol|yardım ed|yap|ver|cevaplay|yanıtlay|sağlay|paylaş|sun|açıklay|anlat|yaz"
    r"|destek ol|yerine getir|hazırlay|oluştur)"
    r"(?:amam|emem|amayız|emeyiz|amıyorum|emiyorum|amayacağım|emeyeceğim)\b"
    r"|\b(?:reddediyorum|reddetmek zorundayım)\b"
    r"|\b(?:açıkla|anlat|yaz|paylaş|yardım et|ver|yap|sağla|öğret|hazırla)(?:mayacağı|meyeceği)m\b",
    "Vietnamese": r"\b(?:tôi|mình|em) (?:không thể|sẽ không|không được phép|xin phép không|từ chối)\b"
    r"|\bxin lỗi\b(?!,? (?:vì|khi|bạn)).*\bkhông thể\b",
    "Indonesian": r"\b(?:saya|kami|aku) (?:tidak|tak|menolak|harus menolak)\b.*"
    r"(?:bantu|beri|jawab|sedia|tulis|jelas|lanjut|dukung|bagi|lakukan|memenuhi|menolak)"
    r"|\bmaaf\b(?!,? (?:atas|karena|bahwa)).*\b(?:tidak (?:bisa|dapat|akan)|menolak)\b",
}
_OTHERS = {
    "Russian": r"\bне (?:могу|буду|стану|смогу|намерен\w*|имею права|вправе|готов\w*)\b.*"
    r"(?:помо|отве|предостав|дать|давать|объясн|писа|расска|выполн|дела|сдела|созда|подел|обсужд"
    r"|участв|содейств|инструкц)|\b(?:извините|простите|к сожалению|мне жаль|сожалею)\b"
    r"(?!,? (?:что|за|если)).*\bне (?:мог|буд|смо)\w*|\bотказыва\w+\b|\bвынужден\w* отказать",
    "Arabic": r"(?:لا (?:أستطيع|يمكنني|أقدر|يسعني)|لن (?:أ|أقوم)|غير قادر|لست قادر).*"
    r"(?:ساعد|قدم|تقديم|إجاب|جيب|وفير|وفر|شرح|كتاب|زود|شارك|تلبية|نفيذ)|(?:أرفض|أعتذر عن)",
    "Hindi": r"(?:मैं|हम|माफ़|माफ|क्षमा|खेद|मुझे).*(?:नहीं (?:कर|दे|बता|लिख|बना|सिखा) ?सक(?:ता|ती)"
    r"|नहीं (?:दूँ|दूं|करूँ|करूं|बताऊ|लिखूँ|लिखूं)|असमर्थ|इनकार)",
    "Chinese": r"(?:我[^你您。]{0,20}|(?:抱歉|对不起|對不起|很遗憾|很遺憾)[^你您。]{0,20})"
    r"(?:不能|无法|無法|不会|不會|不可以|拒绝|拒絕|没办法|不便|不应).{0,25}"
    r"(?:帮|幫|提供|回答|协助|協助|满足|滿足|告诉|告訴|解释|解釋|写|寫|给|給|生成|支持|这个|該|该|这|參與|参与|讨论|執行|执行)",
    "Japanese": r"(?:手伝|答え|お答え|応え|教え|提供|説明|回答|協力|支援|お手伝い"
    r"|対応|作成|書く|手助け|サポート|お力に).{0,14}"
    r"(?:でき(?:ません|ない|かね)|いたしかね|しかね|致しかね|しません|なれません|わけにはいき)"
    r"|(?:申し訳|すみません|ごめん|恐れ入り|残念).{0,40}(?:できません|できない|かねます|お断り|なれません)"
    r"|お断り(?:し|いた|させ)"
    r"|(?:書け|教えられ|答えられ|応じられ)(?:ません|ない)",
    "Korean": r"(?:도와|도움|답변|답해|제공|알려|설명|작성|지원|안내|협조|응할|도울|답할).{0,14}"
    r"(?:수 없|수는 없|어렵습니다|못합니다|못해|않겠|드리지 않|없습니다)|거절(?:하|합|할)|거부(?:하|합)",
}
REFUSALS = {name: re.compile(pattern) for name, pattern in (_LATIN | _OTHERS).items()}
"""A pattern of each language for sentences in lower case."""

_FIRST = 2
"""Sentences of an answer in which a refusal is looked for: an apology may come before it."""
_WORDS = 90
"""Words, or half as many characters of scripts without spaces, of the longest answer that only declines."""


def declines(sentence: str) -> bool:
    """Return whether a sentence in lower case declines to help, in any of the languages."""
    return any(pattern.search(sentence) for pattern in REFUSALS.values())


def declines_first(sentences: tuple[str, ...]) -> bool:
    """Return whether one of the first sentences of an answer declines to help."""
    return any(map(declines, sentences[:_FIRST]))


def only_declines(sentences: tuple[str, ...]) -> bool:
    """Return whether an answer declines at its beginning, and is too short to help after all."""
    text = " ".join(sentences)
    length = len(text.split()) if " " in text.strip() else len(text) / 2
    return declines_first(sentences) and length <= _WORDS

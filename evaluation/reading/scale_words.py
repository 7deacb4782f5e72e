"""Words behind a number that multiply it by a power of ten, such as `million`, in many languages."""

import re

_WORDS = {
    2: "hundred",
    3: "thousand thousands tausend mille mila mil duizend tusen tusind tuhat tuhatta tysiąc tysiące "
       "tysięcy tisíc tisíce"
    " ezer тысяча тысячи тысяч тыс тис тисяча тисячі тисяч χίλια χιλιάδες bin ribu nghìn ngàn พัน 천 "
    "हज़ार हजार ألف آلاف",
    5: "lakh lakhs लाख แสน",
    6: "million millions millionen mio millón millones milhão milhões milione milioni miljoen miljon "
       "miljoner millioner"
    " miljoona miljoonaa milion miliony milionów milionů milioane millió миллион миллиона миллионов "
    "млн мільйон мільйони мільйонів εκατομμύριο εκατομμύρια milyon juta triệu ล้าน 百万 百萬 백만 मिलियन "
    "مليون ملايين",
    7: "crore crores करोड़ 千万 千萬 천만",
    9: "billion billions milliard milliards milliarde milliarden mrd bilhão bilhões miliardo miliardi "
       "miljard miljarder"
    " milliarder miliard miliardy miliardów миллиард миллиарда миллиардов млрд мільярд мільярди мільярдів"
    " milyar miliar tỷ พันล้าน 十亿 十億 십억 अरब مليار",
    12: "trillion trillions 조",
    4: "万 萬 만 หมื่น",
    8: "亿 億 억",
}  # fmt: skip

EXPONENTS = {word: exponent for exponent, words in _WORDS.items() for word in words.split()}
"""The power of ten of each word, in lower case."""

_LETTERS = sorted((word for word in EXPONENTS if len(word) > 1), key=len)
_SIGNS = "".join(word for word in EXPONENTS if len(word) == 1)
SCALE = (
    rf"(?P<scale>k(?![A-Za-z])|(?-i:M)(?![A-Za-z0-9])"
    rf"|[ ]?(?:{'|'.join(map(re.escape, reversed(_LETTERS)))})(?![A-Za-zÀ-ſЀ-ӿ])"
    rf"|[ ]?[{_SIGNS}]|千(?![克米瓦卡]))"
)
"""What multiplies the number before it; `k` and `M` have no space before them, and 3千克 are kilograms."""


def exponent_of(scale: str) -> int:
    """Return the power of ten of what `SCALE` matches."""
    word = scale.strip().casefold()
    return {"k": 3, "千": 3, "m": 6}.get(word) or EXPONENTS[word]

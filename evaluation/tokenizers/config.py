"""What tokenizer_config.json and the files beside it say: class, special and added tokens, chat template."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.errors import SourceError
from evaluation.tokenizers.files import (
    ADDED_TOKENS,
    CONFIG,
    SPECIAL_TOKENS,
    TOKENIZER_JSON,
    read_table,
)

NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""Keys of special tokens, in the order in which transformers adds them."""

_LISTS = ("additional_special_tokens", "extra_special_tokens")

TEMPLATE = "chat_template.jinja"


@dataclass(frozen=True)
class AddedToken:
    """A token that is recognized in a text as a whole; `lstrip` and `rstrip` take blanks beside it."""

    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False
    special: bool = True


@dataclass(frozen=True)
class TokenizerConfig:
    """A folder's settings; `added` has tokens with fixed ids, `special` those that a key names.

    `more` has further special tokens, without ids.
    """

    folder: Path
    content: Mapping[str, Any]
    special: Mapping[str, AddedToken]
    more: tuple[AddedToken, ...] = ()
    added: Mapping[int, AddedToken] = field(default_factory=dict)
    chat_template: str | None = None

    @property
    def class_name(self) -> str | None:
        """Name of the tokenizer's class without `Fast`; None if no file names one."""
        name = self.content.get("tokenizer_class")
        return name.removesuffix("Fast") if isinstance(name, str) else None

    def flag(self, key: str, default: bool) -> bool:
        """Return a key that is true, false or null; raise SourceError if it is something else."""
        value = self.content.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise _wrong(self.folder, key, value, "true or false")
        return value

    @property
    def variables(self) -> dict[str, str]:
        """Special tokens by key, as chat templates see them."""
        return {key: token.content for key, token in self.special.items()}


def read_config(
    folder: Path, defaults: Mapping[str, str] | None = None, *, with_json: bool = False
) -> TokenizerConfig:
    """Read a tokenizer's settings as transformers 4 does.

    Args:
        defaults: Special tokens of the class, by key, where no file names them.
        with_json: Whether added tokens of tokenizer.json count where no other file has any: for a class
            that does not read tokenizer.json itself.

    Raises:
        SourceError: When a file does not hold what it should; it is named.
    """
    content = read_table(folder / CONFIG)
    added = dict(_decoder(folder, content.get("added_tokens_decoder")))
    merged = dict(content)
    if "added_tokens_decoder" not in content:
        merged |= read_table(folder / SPECIAL_TOKENS)
        added |= _added_file(folder, merged)
        added |= _json_tokens(folder) if with_json else {}
    by_text = {token.content: token for token in added.values()}
    special: dict[str, AddedToken] = {}
    for key in NAMES:
        value = merged[key] if key in merged else (defaults or {}).get(key)
        if value is not None:
            token = _token(folder, key, value)
            special[key] = by_text.get(token.content, token)
    return TokenizerConfig(
        folder, content, special, tuple(_more(folder, merged)), added, _template(folder, content)
    )


def _wrong(folder: Path, key: str, value: Any, expected: str) -> SourceError:
    return SourceError(
        f"{folder / CONFIG}: `{key}` is {str(value)[:60]!r}, expected {expected}; correct it, or copy the "
        "tokenizer again"
    )


def _token(folder: Path, key: str, value: Any, **flags: Any) -> AddedToken:
    if isinstance(value, str) and value:
        return AddedToken(value, **flags)
    if isinstance(value, dict) and isinstance(value.get("content"), str) and value["content"]:
        names = ("lstrip", "rstrip", "single_word", "normalized", "special")
        given = {name: bool(value[name]) for name in names if name in value}
        return AddedToken(value["content"], **{**flags, **given})
    raise _wrong(folder, key, value, "a token")


def _decoder(folder: Path, table: Any) -> Iterator[tuple[int, AddedToken]]:
    if table is None:
        return
    if not isinstance(table, dict):
        raise _wrong(folder, "added_tokens_decoder", table, "a table of tokens")
    for number, value in table.items():
        key = f"added_tokens_decoder.{number}"
        if not str(number).isdecimal() or not isinstance(value, dict):
            raise _wrong(folder, key, value, "a token under its id")
        yield int(number), _token(folder, key, value, special=False, normalized=True)


def _added_file(folder: Path, merged: Mapping[str, Any]) -> Iterator[tuple[int, AddedToken]]:
    """Yield the tokens of added_tokens.json; those that a key names are special."""
    table = read_table(folder / ADDED_TOKENS)
    named = {_token(folder, key, merged[key]).content for key in NAMES if merged.get(key)}
    named |= {token.content for token in _more(folder, merged)}
    for text, number in table.items():
        if type(number) is not int or number < 0:
            raise SourceError(
                f"{folder / ADDED_TOKENS}: {text!r} has id {str(number)[:60]!r}, expected a number; copy the "
                "tokenizer again"
            )
        is_special = text in named
        yield number, AddedToken(text, special=is_special, normalized=not is_special)


def _json_tokens(folder: Path) -> Iterator[tuple[int, AddedToken]]:
    """Yield the added tokens of tokenizer.json."""
    path = folder / TOKENIZER_JSON
    tokens = read_table(path).get("added_tokens") or []
    for value in tokens if isinstance(tokens, list) else [None]:
        if not isinstance(value, dict) or type(value.get("id")) is not int:
            raise SourceError(
                f"{path}: `added_tokens` does not hold tokens with ids; copy the tokenizer again"
            )
        yield value["id"], _token(folder, "added_tokens", value)


def _more(folder: Path, merged: Mapping[str, Any]) -> Iterator[AddedToken]:
    for key in _LISTS:
        values = merged.get(key) or []
        values = list(values.values()) if isinstance(values, dict) else values
        if not isinstance(values, list):
            raise _wrong(folder, key, values, "a list of tokens")
        yield from (_token(folder, key, value) for value in values)


def _template(folder: Path, content: Mapping[str, Any]) -> str | None:
    """Return the default chat template: the file's, or else the one in tokenizer_config.json."""
    path = folder / TEMPLATE
    if path.exists():
        try:
            return path.read_text(encoding="utf-8") or None
        except UnicodeDecodeError as error:
            raise SourceError(f"{path}: is not UTF-8 ({error}); copy the tokenizer again") from None
    value = content.get("chat_template")
    if isinstance(value, list):
        named = [entry for entry in value if isinstance(entry, dict)]
        value = {str(entry.get("name")): entry.get("template") for entry in named}
    if isinstance(value, dict):
        value = value.get("default")
    if value is not None and not isinstance(value, str):
        raise _wrong(folder, "chat_template", value, "a template")
    return value or None

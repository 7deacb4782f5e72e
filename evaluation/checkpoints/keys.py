"""Typed access to the keys of a configuration that others wrote."""

import math
from typing import Any

from evaluation.errors import CheckpointError
from evaluation.wording import kind_of

_LARGEST = 2**31 - 1


class Keys:
    """Typed access to a model configuration, with errors that name file and key."""

    def __init__(self, config: dict[str, Any], where: str, prefix: str = "") -> None:
        self.config = config
        self.where = where
        self.prefix = prefix

    def given(self, key: str) -> Any:
        return self.config.get(key)

    def wrong(self, key: str, expected: str) -> CheckpointError:
        state = f"is {short(self.config[key])}" if key in self.config else "is missing"
        return CheckpointError(f"{self.where}: `{self.prefix}{key}` {state}; expected {expected}")

    def count(self, key: str, default: int | None = None, *, most: int = _LARGEST) -> int:
        found = self.optional_count(key, most=most)
        value = default if found is None else found
        if value is None:
            raise self.wrong(key, f"a positive integer up to {most}")
        return value

    def optional_count(self, key: str, *, most: int = _LARGEST) -> int | None:
        value = self.given(key)
        if value is None:
            return None
        if type(value) is not int or not 1 <= value <= most:
            raise self.wrong(key, f"a positive integer up to {most}")
        return value

    def number(self, key: str, default: float) -> float:
        """The default where the key is absent; a null says nothing that a model could be built by."""
        if key in self.config and self.given(key) is None:
            raise self.wrong(key, "a positive number")
        found = self.optional_number(key)
        return default if found is None else found

    def optional_number(self, key: str) -> float | None:
        """YAML reads `1e-05` as text, so text that is a number counts as one."""
        value = self.given(key)
        if value is None:
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not 0 < number < math.inf:
            raise self.wrong(key, "a positive number")
        return number

    def flag(self, key: str, default: bool) -> bool:
        value = self.config.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        value = self.given(key)
        if value is not None and not (isinstance(value, str) and value):
            raise self.wrong(key, "text")
        return value


def short(value: Any) -> str:
    """A value for a message: tables and lists may refer to themselves, or be very long."""
    if isinstance(value, dict | list):
        return f"{kind_of(value)} ({len(value)})"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"

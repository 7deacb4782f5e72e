"""Cases as data: YAML files beside the tests that read them, a section for each test; samples of many.

`!long "<[ x 1000>"` is a text with so many of the letters before the x.
"""

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

HERE = Path(__file__).parent
EVERYTHING = bool(os.environ.get("EVAL_FULL"))
"""Whether tests run their complete lists."""

Case = TypeVar("Case")


def sample(every: int, values: Sequence[Case]) -> Sequence[Case]:
    """An even sample of many values: one of so many; all of them with EVAL_FULL."""
    return values if EVERYTHING else values[::every]


class _Loader(yaml.SafeLoader):
    """YAML with `!long`."""


def _long(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    text = loader.construct_scalar(node)
    return re.sub(r"(?s)<(.{1,40}?) x (\d+)>", lambda found: found[1] * int(found[2]), text)


_Loader.add_constructor("!long", _long)


@functools.cache
def table(place: str) -> Any:
    """What `tests/<place>.yaml` holds."""
    return yaml.load((HERE / f"{place}.yaml").read_text(encoding="utf-8"), _Loader)


def cases(place: str, section: str) -> list[Any]:
    """Arguments of a parametrized test: the lists of a section, called by their names if they have any."""
    found = table(place)[section]
    if isinstance(found, dict):
        return [pytest.param(*values, id=name or "empty") for name, values in found.items()]
    return [pytest.param(*values) for values in found]

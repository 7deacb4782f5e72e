"""What things may be called: nothing that a table, page or terminal would take for a command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.errors import ConfigError
from evaluation.settings.names import check_label
from evaluation.settings.suites import load_suite
from tests.settings.test_bad_settings import AIM, STAGE, TASK, content, said

PROBE = {
    "category": "c",
    "messages": [{"role": "user", "content": "q"}],
    "checks": [{"check": "python_parses"}],
}
LABELS = {
    "a formula": "=SUM(1)",
    "another formula": "@SUM(1)",
    "a sign": "+1",
    "a dash": "-x",
    "an escape": "a\x1b[31m",
    "a tab": "a\tb",
    "a line break": "a\n",
    "a hidden letter": "a\u202eb",
    "TeX": "a^~\\b",
    "markup": "<b>",
    "a space": " a",
    "a space at the end": "a ",
    "nothing": "",
    "too long": "x" * 81,
}
PATTERN = {"kind": "pattern", "pattern": "x"}
GENERATED = {"dataset": "d", "prompt": "q", "chat": False, "max_new_tokens": 1}
NAMED: dict[str, Callable[[str], dict[str, Any]]] = {
    "slices": lambda name: {"slices": {name: {"dataset": "x"}}},
    "tasks": lambda name: {"tasks": {name: TASK}},
    "probes": lambda name: {"probes": {name: PROBE}},
    "generation_tasks": lambda name: {"generation_tasks": {name: GENERATED}},
    "group": lambda name: {"slices": {"s": {"dataset": "x", "group": name}}},
    "category": lambda name: {"probes": {"p": {**PROBE, "category": name}}},
    "verifiers": lambda name: {
        "generation_tasks": {"t": {**GENERATED, "verifiers": {name: PATTERN}}}
    },
    "strata": lambda name: {"generation_tasks": {"t": {**GENERATED, "strata": {name: "x"}}}},
}


@pytest.mark.parametrize("name", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("where", NAMED)
def test_names_that_something_would_take_for_a_command(
    tmp_path: Path, where: str, name: str
) -> None:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(NAMED[where](name)))
    with pytest.raises(ConfigError) as caught:
        load_suite(tmp_path, "mine")
    assert f"{name!r}: a name " in str(caught.value)
    assert where in str(caught.value)
    assert all(line.isprintable() for line in str(caught.value).splitlines())


@pytest.mark.parametrize("name", LABELS.values(), ids=LABELS)
def test_names_of_stages_and_runs(name: str) -> None:
    for raw in (
        {**content({}), "stages": {name: STAGE}},
        content({"runs": {name: {"path": "r"}}}),
        content({}, objective=[{**AIM, "group": name}]),
    ):
        assert f"{name!r}: a name " in said(raw)


@pytest.mark.parametrize(
    "name", ["a", "flexible-extract", "level 5 (hard)", "exact_match,strict-match", "Größe", "1.5B"]
)
def test_names_that_are_shown_as_they_are(name: str) -> None:
    assert check_label(name) == name

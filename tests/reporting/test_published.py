"""Published scores of other models: a line in the curve of their item, with its source, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from evaluation.dependencies.keys import tables_parts
from evaluation.dependencies.places import Place
from evaluation.errors import ConfigError
from evaluation.reporting.pages.levels import with_levels
from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan

SOURCE = "https://example.org/paper, table 4"
GIVEN: dict[str, Any] = {"a model": {"source": SOURCE, "scores": {"quiz": 0.431, "other": 0.2}}}


def configured(plan: StagePlan, references: Any) -> StagePlan:
    content = plan.config.model_dump(mode="json", exclude_defaults=True)
    config = validate_config({**content, "references": references}, "test")
    return replace(plan, config=config)


def test_only_its_items_have_a_line(reported: dict[str, StagePlan]) -> None:
    config = configured(reported["second"], GIVEN).config
    series = [
        {"tier": tier, "item": item, "metric": metric}
        for tier, item, metric in (
            ("tier3", "quiz", "acc"),
            ("tier3", "quiz", "gold_bits_per_byte"),
            ("tier3", "overall", "acc"),
            ("tier2", "quiz", "ppl"),
        )
    ]
    drawn, notes = with_levels(series, config, [], 1)
    assert [one.get("levels") for one in drawn] == [
        [{"name": "a model (published)", "number": 1, "value": 0.431}],
        None,
        None,
        None,
    ]
    (note,) = notes
    assert SOURCE in note
    assert "nothing is paired with it" in note


def test_pages_are_written_again_with_them(reported: dict[str, StagePlan]) -> None:
    plan = reported["second"]
    parts = [
        tables_parts(Place(plan.results, (configured(plan, given),)), ()) for given in ({}, GIVEN)
    ]
    assert parts[0] != parts[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scores": {"quiz": 43.1}}, "43.1 is no fraction; write 0.431"),
        ({"metric": "accc"}, "did you mean acc"),
    ],
)
def test_what_is_no_score_is_refused(
    reported: dict[str, StagePlan], changes: Any, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        configured(reported["second"], {"a model": {**GIVEN["a model"], **changes}})

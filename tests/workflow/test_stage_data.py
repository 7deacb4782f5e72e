"""Caches of a stage: read by the first checkpoint of a process, and not by those after it."""

import pytest
import yaml

from evaluation.errors import CacheError
from evaluation.prefill.tiers import PREFILLS
from evaluation.scoring.job import StageData, read_stage_data
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan, plan_stages
from tests.workflow.world import World


def plan_of(world: World) -> StagePlan:
    return plan_stages(load_config(world.config))["stage2"]


def all_of(data: StageData) -> dict[tuple[str, str], object]:
    return {(tier, name): one for tier, entries in data.items() for name, one in entries.items()}


def test_what_is_unchanged_is_not_read_again(world: World) -> None:
    first, second = (all_of(read_stage_data(plan_of(world))) for _ in range(2))
    assert {tier for tier, _ in first} == {"tier2", "tier3", "tier4"}
    assert all(second[key] is one for key, one in first.items())


def test_what_was_made_anew_is_read(world: World) -> None:
    first = all_of(read_stage_data(plan_of(world)))
    path = world.folder / "suites" / "base.yaml"
    content = yaml.safe_load(path.read_text())
    content["slices"]["text"]["tokens"] = 640
    path.write_text(yaml.safe_dump(content))
    plan = plan_of(world)
    PREFILLS["tier2"].make(plan, "text")
    second = all_of(read_stage_data(plan))
    assert {key for key, one in first.items() if second[key] is not one} == {("tier2", "text")}
    assert second["tier2", "text"].meta != first["tier2", "text"].meta  # type: ignore[attr-defined]


def test_what_is_gone_since_is_missed(world: World) -> None:
    plan = plan_of(world)
    read_stage_data(plan)
    (plan.cache_folder("tier2", "text") / "meta.json").unlink()
    with pytest.raises(CacheError, match=r"text is not prefilled"):
        read_stage_data(plan)

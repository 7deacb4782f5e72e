"""`compare`, `status`, `deltas`, `export` and `doctor` on what is not as it should be."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.bridge.folders import make_plans, write_side
from tests.tables import cases
from tests.tools.conftest import Command
from tests.workflow.world import World

TIER2, TIER3, TIER4 = "tier2_ppl.json", "tier3_cf.json", "tier4_sft_native.json"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `good` and `bad`, the second one significantly worse."""
    root = tmp_path_factory.mktemp("compare")
    plan = make_plans(root)["first"]
    write_side(root / "good", plan, step=20, skill=1.0, seed=1)
    write_side(root / "bad", plan, step=10, seed=2)
    tiers = ("slices", "tasks")
    bare = make_plans(root / "other", command="launcher", tiers=tiers)["first"]
    for name in ("bare", "barer"):
        write_side(root / name, bare, step=10, per_item=False, protocol="external: launcher")
    return root


Breakage = Callable[[Path, Path], object]
COMPARISONS: dict[str, tuple[Breakage, list[str]]] = {
    "A lacks a tier": (lambda a, b: (a / TIER3).unlink(), ["A/tier3_cf.json: no such file",
        "score that tier on both sides"]),
    "an empty file": (lambda a, b: (b / TIER3).write_bytes(b""), ["B/tier3_cf.json: not JSON"]),
    "no table": (lambda a, b: (b / "tier3_cf_candidates.parquet").unlink(),
        ["B/tier3_cf_candidates.parquet: no such file"]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("flags", [(), ("--fail-on-regression",)])
def test_compare_never_passes_what_it_did_not_compare(
    command: Command, scored: Path, tmp_path: Path, name: str, flags: tuple[str, ...]
) -> None:
    breakage, words = COMPARISONS[name]
    a, b = (Path(shutil.copytree(scored / "good", tmp_path / name)) for name in "AB")
    breakage(a, b)
    ended = command("compare", a, f"{b}/", *flags)
    ended.check(1, *words)
    assert ended.out == ""


@pytest.mark.parametrize(
    ("a", "b", "flags", "code"),
    [
        ("bad", "good", ["--fail-on-regression"], 1),
        ("bad", "good", [], 0),
        ("good/", "bad/../bad", ["--fail-on-regression"], 0),
        ("bare", "barer", [], 0),
    ],
)
def test_exit_codes_of_compare(
    command: Command, scored: Path, a: str, b: str, flags: list[str], code: int
) -> None:
    ended = command("compare", f"{scored}/{a}", f"{scored}/{b}", *flags)
    ended.check(code)
    assert "tier3" in ended.out


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """A configuration of two stages without a single result."""
    plan = make_plans(tmp_path)["second"]
    content = json.loads(plan.config.model_dump_json(exclude_none=True, exclude_defaults=True))
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize(("arguments", "code", "words"), cases("command_lines", "nothing_scored"))
def test_commands_where_nothing_was_scored(
    command: Command, configured: Path, arguments: list[str], code: int, words: list[str]
) -> None:
    ended = command(*arguments, "--config", configured)
    ended.check(code, *words)


def test_json_of_a_configuration(command: Command, world: World) -> None:
    config = ("--config", world.config, "--json")
    status = json.loads(command("status", *config).out)["stages"]
    assert set(status) == {"stage1", "stage2"}
    assert not status["stage1"]["complete"]
    doctor = json.loads(command("doctor", *config).out)
    assert doctor["faults"] == ["caches"]
    assert {problem["check"] for problem in doctor["problems"]} == {"caches"}
    verdicts = json.loads(command("bridge-table", *config).out)["stages"]
    assert verdicts["stage1"]["do"] == "No objective set"
    assert verdicts["stage2"]["do"].startswith("Wait: ")

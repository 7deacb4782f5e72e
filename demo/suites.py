"""The suites of the four stages, cut down to what two cores score in minutes.

    python -m demo.suites SUITES TARGET

Templates, candidates and metrics stay as they are; there are fewer items, and some come from
another split, since that is the one that the questions package holds.
"""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from demo.wheels import command_line
from evaluation.files import write_text
from evaluation.settings.yaml_files import read_yaml

OWN = ("demo_clusters.yaml", "demo_verified.yaml")
"""Suites of the demo's own; they have generation tasks, as those of the suites are too hard for its model."""

TOKENS = 768
"""Tokens of a slice, in place of 5,000,000."""

QUESTIONS = 16
"""Questions of a task, in place of 12,000."""

LEFT_OUT = (
    "qasc",
    "wiki_en_20231101",
    "math_finemath4plus",
    "math_infiwebmath3plus",
    "math_infiwebmath4plus",
    "math_openmathinstruct1",
    "code_starcoder2data_extras_lhq",
)
"""A task whose data the package does not hold, and slices that are much like others."""

SPLITS = dict.fromkeys(("arc_easy", "arc_challenge", "openbookqa", "sciq"), "validation")
"""Splits in place of `test`, which the package does not hold."""

SUBJECTS = ("astronomy", "high_school_geography", "marketing", "world_religions")
"""Subjects of MMLU, in place of 57."""

PROBES_PER_CATEGORY = 2
"""In place of fifteen."""

ANSWER_TOKENS = 64
"""Longest answer to a probe."""


def cut_suite(suite: dict[str, Any]) -> dict[str, Any]:
    """A suite's YAML with fewer items."""
    cut = dict(suite)
    for section, shrink in (("slices", _slice), ("tasks", _task)):
        if section in suite:
            kept = {name: item for name, item in suite[section].items() if name not in LEFT_OUT}
            cut[section] = {name: shrink(name, item) for name, item in kept.items()}
    if "probes" in suite:
        cut["probes"] = _probes(suite["probes"])
    return cut


def _slice(_: str, item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "tokens": TOKENS, "skip_documents": 0}  # the mirrors hold little


def _task(name: str, item: dict[str, Any]) -> dict[str, Any]:
    cut = {**item, "limit": QUESTIONS}
    if "provider" not in item:
        cut["split"] = SPLITS.get(name, item.get("split", "train"))
        if "configs" in item:
            cut["configs"] = list(SUBJECTS)
    return cut


def _probes(probes: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    counts = Counter[str]()
    for name, probe in probes.items():
        counts[probe["category"]] += 1
        if counts[probe["category"]] <= PROBES_PER_CATEGORY:
            longest = min(probe.get("max_new_tokens", ANSWER_TOKENS), ANSWER_TOKENS)
            kept[name] = {**probe, "max_new_tokens": longest}
    return kept


def write_suites(suites: Path, target: Path) -> None:
    """Write the suites of a folder, cut down, and the demo's own."""
    for path in sorted(suites.glob("*.yaml")):
        text = yaml.safe_dump(cut_suite(read_yaml(path)), sort_keys=False, allow_unicode=True)
        write_text(target / path.name, f"# {path}, cut down by demo/suites.py\n{text}")
    for name in OWN:
        shutil.copy(Path(__file__).parent / name, target / name)


if __name__ == "__main__":
    command_line(write_suites)

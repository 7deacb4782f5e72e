"""All that a user may change: the keys of `edits.yaml`, and whatever is more than that in `edits_of_*`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from tests.histories.registry import EDITS, Edit, neighbours, other_values, put, swap

__all__ = ["ASKS_NOTHING", "EDITS"]

for _name in "checkpoints settings sources stages suites".split():
    import_module(f"tests.histories.edits_of_{_name}")

WHERE: dict[str, Callable[[Any, Any], bool]] = {
    "answers_primary": lambda task, value: value is None or value in task["verifiers"],
    "objective_metric": lambda objective, value: objective["tier"] == "tier3",
    "suites": lambda stage, names: "sft" in names or "sft" not in stage["suites"],
}
"""Whether a value fits what else the holder of the key has."""

for _about, _edits in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text()).items():
    for _name, _places in _edits.items():
        if _about == "order":
            EDITS[_name] = Edit(neighbours(*_places), swap, _about)
        else:
            EDITS[_name] = Edit(other_values(_places, WHERE.get(_name)), put, _about)

ASKS_NOTHING = (
    "margin objective objective_turned objective_metric objective_taken_away checkpoint_deleted "
    "task_primary task_group slice_group probe_category order_of_objectives other_run "
    "other_run_removed setting_of_no_result repaired"
).split()
"""Edits after which every result that is there may stay."""

"""All that a user may change, by name: each module registers its own."""

from importlib import import_module

from tests.histories.registry import EDITS

__all__ = ["ASKS_NOTHING", "EDITS"]

for _name in "checkpoints settings sources stages suites".split():
    import_module(f"tests.histories.edits_of_{_name}")

ASKS_NOTHING = (
    "margin objective objective_turned objective_metric objective_taken_away checkpoint_deleted "
    "task_primary task_group slice_group probe_category order_of_objectives other_run "
    "other_run_removed setting_of_no_result repaired"
).split()
"""Edits after which every result that is there may stay."""

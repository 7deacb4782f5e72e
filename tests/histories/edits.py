"""All that a user may change, by name: each module registers its own."""

from tests.histories import (
    edits_of_answers,
    edits_of_checkpoints,
    edits_of_order,
    edits_of_runs,
    edits_of_settings,
    edits_of_sources,
    edits_of_stages,
    edits_of_suites,
)
from tests.histories.registry import EDITS

__all__ = ["ASKS_NOTHING", "EDITS", "MODULES"]

MODULES = (
    edits_of_answers,
    edits_of_checkpoints,
    edits_of_order,
    edits_of_runs,
    edits_of_settings,
    edits_of_sources,
    edits_of_stages,
    edits_of_suites,
)

ASKS_NOTHING = (
    *("margin", "objective", "aim_turned", "aim_metric", "aim_taken_away", "checkpoint_deleted"),
    *("task_primary", "task_group", "slice_group", "probe_category", "order_of_aims", "other_run"),
    *("other_run_removed", "setting_of_no_result", "repaired"),
)
"""Edits after which every result that is there may stay."""

"""Typed models of `comparison.json` and `comparison.csv`, which compare runs."""

from typing import Any

from evaluation.results.deltas_file import Rows
from evaluation.results.files import FileModel, StageFile
from evaluation.settings.runs import By

COMPARISON = "comparison.json"
COMPARISON_TABLE = "comparison.csv"
COMPARISON_FILES = (COMPARISON_TABLE, COMPARISON)

Steps = tuple[int | None, int | None]
"""Steps of two matched checkpoints."""


class StageComparison(FileModel):
    """One stage of two runs."""

    stage_a: str
    stage_b: str
    by: By
    checkpoints: int
    notes: tuple[str, ...]
    leads: Rows
    deltas: Rows

    @property
    def title(self) -> str:
        """The stage's name; both names where the runs call it differently."""
        return " against ".join(dict.fromkeys((self.stage_a, self.stage_b)))

    @property
    def by_match(self) -> dict[Steps, list[dict[str, Any]]]:
        """Its deltas by the steps of A and B, in the order of the comparison."""
        matches: dict[Steps, list[dict[str, Any]]] = {}
        for row in self.deltas:
            matches.setdefault((row["step_a"], row["step_b"]), []).append(row)
        return matches

    @property
    def matched(self) -> str:
        """The number of compared checkpoints and their steps; of more than 12, the first 10 and the last."""
        words = [str(a) if a == b else f"{a} (B's {b})" for a, b in self.by_match]
        shown = words if len(words) < 13 else [*words[:10], "…", words[-1]]
        many = "s" if len(words) > 1 else ""
        return f"{len(words)} matched checkpoint{many} by {self.by}: A's step {', '.join(shown)}"


class RunComparison(FileModel):
    """Two runs, or two checkpoints as runs of one each."""

    run_a: str
    run_b: str
    path_a: str
    path_b: str
    error: str | None = None
    notes: tuple[str, ...] = ()
    stages: tuple[StageComparison, ...] = ()


class Comparison(StageFile):
    """`comparison.json`."""

    protocol: str
    comparisons: tuple[RunComparison, ...]


COMPARISON_COLUMNS = (
    "run_a run_b stage_a stage_b step_a step_b tokens_a tokens_b tier item group metric value_a "
    "value_b delta low high low_all high_all p p_holm mde n clusters higher_is_better primary flag "
    "method note"
).split()

"""Results as pandas DataFrames, for notebooks and scripts: what `evaluation.load(FOLDER)` returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from evaluation.errors import ResultsError, no_such
from evaluation.results.columns import read_table
from evaluation.results.files import RUN_AGAIN
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.results.table import SUMMARY, TABLE_COLUMNS
from evaluation.settings.steps import results_folder
from evaluation.settings.tiers import TIERS, TierName

_WHOLE = {name: "Int64" for name, kind in TABLE_COLUMNS.items() if kind.startswith("int")}
"""Columns of whole numbers, which stay whole where some are missing."""


@dataclass(frozen=True, kw_only=True)
class LoadedResults:
    """The results of a run: the folders of its stages by name."""

    folders: Mapping[str, Path]

    def table(self, stage: str | None = None) -> pd.DataFrame:
        """Return the long table of a stage, or of all stages; raise ResultsError."""
        folders = self.folders.values() if stage is None else [self._stage(stage)]
        frames = [
            read_table(folder / SUMMARY, TABLE_COLUMNS, RUN_AGAIN).to_pandas().astype(_WHOLE)
            for folder in folders
        ]
        return pd.concat(frames, ignore_index=True)

    def recommendation(self, stage: str) -> Recommendation | None:
        """Return which checkpoint of a stage to take on, and why; None without a bridge."""
        path = self._stage(stage) / RECOMMENDATION
        return Recommendation.read(path) if path.exists() else None

    def units(self, stage: str, checkpoint: int | str, tier: TierName) -> pd.DataFrame:
        """Return a checkpoint's blocks, questions or prompts, each with what it contributes to each metric.

        Args:
            checkpoint: Step, or `bridge`.
        """
        folder, name = self._stage(stage), str(checkpoint)
        if name != "bridge":
            name = f"by_checkpoint/{results_folder(int(checkpoint))}"
        if tier not in TIERS:
            raise ResultsError(no_such("tier", tier, TIERS))
        path = folder / name / TIERS[tier].units_file
        if not path.exists():
            raise ResultsError(f"{path}: no such file; the checkpoint was not scored in {tier}")
        return pd.read_parquet(path)

    def _stage(self, name: str) -> Path:
        if name not in self.folders:
            raise ResultsError(no_such("stage", name, self.folders))
        return self.folders[name]


def load_results(folder: str | Path) -> LoadedResults:
    """Open the results of a run, or of one stage; files are read when they are asked for.

    Args:
        folder: Folder of all results (`results` in the configuration), or of one stage.

    Raises:
        ResultsError: The folder has no table of any stage.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ResultsError(f"{folder}: no such folder; name a folder of results")
    tables = [folder / SUMMARY, *sorted(folder.glob(f"*/{SUMMARY}"))]
    folders = {path.parent.resolve().name: path.parent for path in tables if path.is_file()}
    if not folders:
        raise ResultsError(
            f"{folder}: has no table of a stage ({SUMMARY}); name the folder under `results` in the "
            "configuration, after a stage has been evaluated"
        )
    return LoadedResults(folders=folders)

"""Results as pandas DataFrames, for notebooks and scripts: what `evaluation.load(FOLDER)` returns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from evaluation.errors import ResultsError, near_path, no_such
from evaluation.results.columns import read_table
from evaluation.results.deltas_file import DELTAS, StageDeltas
from evaluation.results.files import COLLECT_AGAIN, read_records
from evaluation.results.items import models_of
from evaluation.results.probe_files import Generation, Tier4File, read_generations
from evaluation.results.read import read_tier_file
from evaluation.results.stage_files import RECOMMENDATION, Recommendation
from evaluation.results.table import SUMMARY, TABLE_COLUMNS, read_rows
from evaluation.results.verified_files import FOLDER, RESULTS, VerifiedCompletion, read_verified
from evaluation.settings.steps import results_folder
from evaluation.settings.tiers import TIERS

BRIDGE = "bridge"

_WHOLE = {column.name: "Int64" for column in TABLE_COLUMNS if column.type.startswith("int")}
"""Columns of whole numbers, which stay whole where some are missing."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A completion with the verdicts on it: credit by verifier, or by check (1 or 0)."""

    tier: str
    item: str
    id: str
    sample: int
    prompt: str
    completion: str
    stop_reason: str | None
    credits: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class LoadedStage:
    """A stage's tables; a checkpoint is named by its step, or `bridge`."""

    name: str
    folder: Path

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row for each checkpoint, item and metric: the columns of `summary.parquet`."""
        return pd.DataFrame(read_rows(self.folder / SUMMARY)).astype(_WHOLE)

    @cached_property
    def deltas(self) -> pd.DataFrame:
        """A row for each delta against the bridge, as in `bridge_deltas.json`; empty without a bridge."""
        path = self.folder / DELTAS
        if not path.exists():
            return pd.DataFrame()
        return pd.DataFrame([row.model_dump() for row in StageDeltas.read(path).deltas])

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """Which checkpoint to take on, and why; None without a bridge."""
        path = self.folder / RECOMMENDATION
        return Recommendation.read(path) if path.exists() else None

    @property
    def checkpoints(self) -> list[int | str]:
        """Steps, then `bridge` if there is one."""
        rows = self.summary.drop_duplicates(["role", "step"])
        steps = [int(step) for step in rows[rows["role"] == "step"]["step"]]
        return [*steps, *([BRIDGE] if BRIDGE in set(rows["role"]) else [])]

    def items(self, tier: str, checkpoint: int | str) -> pd.DataFrame:
        """Return a checkpoint's table of blocks, candidates, answers or prompts.

        Args:
            tier: `tier2`, `tier3`, `tier4` or `tier5`.
            checkpoint: Step, or `bridge`.

        Returns:
            The columns of the tier's items file (docs/results.md).

        Raises:
            ResultsError: There is no such tier or checkpoint, or it has no such file.
        """
        if tier not in TIERS:
            raise ResultsError(no_such("tier", tier, TIERS))
        path = self._folder_of(checkpoint) / TIERS[tier].items_file
        if not path.exists():
            raise ResultsError(f"{path}: no such file; the checkpoint was not scored in {tier}")
        model = models_of(tier).per_item
        if isinstance(model, type):
            rows = read_records(path, model, COLLECT_AGAIN)
            return pd.DataFrame([row.model_dump(exclude_unset=True) for _, row in rows])
        variants = f"{TIERS[tier].headline}_"
        frame: pd.DataFrame = read_table(path, model, COLLECT_AGAIN, variants).to_pandas()
        return frame

    def completions(self, checkpoint: int | str) -> Iterator[Completion]:
        """Yield a checkpoint's completions, those of probes first.

        Args:
            checkpoint: Step, or `bridge`.

        Raises:
            ResultsError: There is no such checkpoint, or a file is damaged.
        """
        folder = self._folder_of(checkpoint)
        probes = folder / TIERS["tier4"].items_file
        if probes.exists():
            checks = _checks(folder)
            for answer in read_generations(probes).values():
                yield _of_probe(answer, checks.get(answer.id, {}))
        for path in sorted(folder.glob(f"{FOLDER}/*/{RESULTS}")):
            for completion in read_verified(folder, path.parent.name):
                yield _of_task(path.parent.name, completion)

    def _folder_of(self, checkpoint: int | str) -> Path:
        if checkpoint not in self.checkpoints:
            raise ResultsError(no_such("checkpoint", str(checkpoint), map(str, self.checkpoints)))
        if isinstance(checkpoint, str):
            return self.folder / BRIDGE
        return self.folder / "by_checkpoint" / results_folder(checkpoint)


@dataclass(frozen=True, kw_only=True)
class LoadedResults:
    """The results of a run: its stages by name, in the order of their folders' names."""

    folder: Path
    stages: Mapping[str, LoadedStage] = field(repr=False)

    @property
    def summary(self) -> pd.DataFrame:
        """The summaries of all stages."""
        return pd.concat([stage.summary for stage in self.stages.values()], ignore_index=True)

    @property
    def deltas(self) -> pd.DataFrame:
        """The deltas of all stages that have a bridge."""
        return pd.concat([stage.deltas for stage in self.stages.values()], ignore_index=True)


def load_results(folder: str | Path) -> LoadedResults:
    """Open the results of a run, or of one stage; files are read when they are asked for.

    Args:
        folder: Folder of all results (`results` in the configuration), or of one stage.

    Raises:
        ResultsError: The folder has no tables of any stage.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ResultsError(
            f"{folder}: no such folder{near_path(folder, Path.is_dir)}; name a folder of results"
        )
    tables = [folder / SUMMARY, *sorted(folder.glob(f"*/{SUMMARY}"))]
    stages = [_stage(path.parent) for path in tables if path.is_file()]
    if not stages:
        raise ResultsError(
            f"{folder}: has no tables of a stage ({SUMMARY}); name the folder under `results` in the "
            "configuration, after a stage has been evaluated"
        )
    return LoadedResults(folder=folder, stages={stage.name: stage for stage in stages})


def _stage(folder: Path) -> LoadedStage:
    rows = read_rows(folder / SUMMARY)
    return LoadedStage(name=str(rows[0]["stage"]) if rows else folder.name, folder=folder)


def _checks(folder: Path) -> dict[str, dict[str, float | None]]:
    file = read_tier_file(folder, "tier4")
    assert isinstance(file, Tier4File)
    return {
        prompt.id: {name: float(check.passed) for name, check in prompt.checks.items()}
        for prompt in file.prompts or ()
    }


def _of_probe(answer: Generation, checks: Mapping[str, float | None]) -> Completion:
    return Completion(
        tier="tier4",
        item=answer.category or "",
        id=answer.id,
        sample=0,
        prompt=answer.prompt,
        completion=answer.response,
        stop_reason=answer.stop_reason,
        credits=checks,
    )


def _of_task(task: str, completion: VerifiedCompletion) -> Completion:
    return Completion(
        tier="tier5",
        item=task,
        id=completion.id,
        sample=completion.sample,
        prompt=completion.prompt,
        completion=completion.completion,
        stop_reason=completion.stop_reason,
        credits=completion.credits,
    )

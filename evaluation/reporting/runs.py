"""Runs side by side, written: `comparison.csv`, `comparison.json` and `comparison.html`."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.dependencies.other_runs import references
from evaluation.errors import EvaluationError
from evaluation.exit_codes import machine_fault
from evaluation.reporting.pages.page import write_page
from evaluation.reporting.pages.runs_page import runs_page
from evaluation.results.comparison_file import COMPARISON, COMPARISON_PAGE, read_comparison
from evaluation.runs.compare import ComparedRuns, compare_runs
from evaluation.runs.document import as_document, compared, not_compared, write_document
from evaluation.runs.find import Run, find_run, this_run
from evaluation.runs.matching import Matching
from evaluation.settings.config import Config
from evaluation.settings.plan import StagePlan
from evaluation.settings.runs import THIS_RUN


def write_runs(folder: Path, comparisons: Sequence[ComparedRuns]) -> list[Path]:
    """Writes all three files of runs that were compared; the first is A of each."""
    runs = [comparisons[0].ours, *(one.theirs for one in comparisons)]
    return _write(folder, runs, [compared(one) for one in comparisons])


def write_configured(folder: Path, plans: Mapping[str, StagePlan]) -> tuple[list[Path], list[str]]:
    """Writes all three files of this run and those that its configuration names.

    Returns the files, and a sentence for each run that could not be compared, which they name too.
    """
    config = next(iter(plans.values())).config
    runs: list[Run] = []
    entries = []
    once = references(config)
    for name, other in config.runs.items():
        path = Path(other.path)
        if name in once:
            continue
        try:
            ours, theirs = this_run(plans), find_run(name, path)
            runs += [theirs] if runs else [ours, theirs]
            entries.append(compared(compare_runs(ours, theirs, Matching(by=other.by))))
        except (EvaluationError, OSError) as error:
            why = machine_fault(error) if isinstance(error, OSError) else str(error)
            entries.append(not_compared((THIS_RUN, name), Path(config.results), path, why))
    errors = [f"runs.{one['run_b']}: {one['error']}" for one in entries if one["error"]]
    if not runs:  # curves are seen against levels all the same
        with contextlib.suppress(EvaluationError):
            runs = [this_run(plans)]
    return _write(folder, runs, entries, config), errors


def _write(
    folder: Path,
    runs: Sequence[Run],
    entries: Sequence[dict[str, Any]],
    config: Config | None = None,
) -> list[Path]:
    """`entries` are of `runs.document`; `config` is that of the first run, if there is one."""
    files = write_document(folder, as_document(entries))
    page = folder / COMPARISON_PAGE
    write_page(page, runs_page(runs, read_comparison(folder / COMPARISON).comparisons, config))
    return [*files, page]

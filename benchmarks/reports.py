"""python -m benchmarks.reports: measures the time and size of the reports of large runs.

Results of four stages in three runs are drawn at random, as in the tests; nothing is scored. Then all
steps after scoring run on them, timed in CPU seconds, and the pages are opened in Chromium if it is
installed.
"""

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from evaluation.bridge.write import write_deltas, write_stage
from evaluation.reporting.comparison import write_configured
from evaluation.reporting.pages.front_page import write_front_page
from evaluation.reporting.pages.page import write_page
from evaluation.reporting.pages.stage_page import stage_page
from evaluation.reporting.tables.figures import write_figures
from evaluation.reporting.tables.stage_results import read_stage
from evaluation.reporting.tables.summary import write_tables
from evaluation.reporting.tables.task_quality import write_quality
from evaluation.reporting.terminal import as_table
from evaluation.results.comparison_file import COMPARISON, COMPARISON_PAGE
from evaluation.results.stage_files import PAGE
from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from tests.bridge.folders import OBJECTIVE, SUITE, write_side
from tests.reporting.browser import launched, missing, opened

STAGES = ("web", "mix", "reasoning", "sft")
RUNS = ("this", "other rate", "other mix")
SIZES = {"items": 200, "blocks": 60, "prompts": 24}

Rows = list[list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reports", description=__doc__)
    parser.add_argument("--steps", type=int, default=500, help="checkpoints of a stage")
    parser.add_argument("--output", type=Path, help="keeps the files there")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="reports-"))
        folder = options.output or Path(scratch)
        rows = [["what", "CPU s", "MB"], *measured(folder, options.steps)]
        rows += [["opened in Chromium", "wall s", ""], *rendered(folder)]
    print(f"{options.steps} checkpoints × {len(STAGES)} stages × {len(RUNS)} runs\n")
    print(as_table(rows))


def measured(folder: Path, steps: int) -> Iterator[list[str]]:
    """Draw the results, and make all pages of the first run; yield a row of the table for each kind."""
    plans = {name: draw_run(folder, name, steps) for name in RUNS}
    yield ["results of all runs, drawn", "", _megabytes(folder)]
    ours = plans[RUNS[0]]
    numbers = tuple(range(1, steps + 1))
    compared = [plan for plan in ours.values() if plan.stage.bridge is not None]
    yield _row("deltas of a step, on average", lambda: _deltas(compared, numbers), (), steps * 3)
    pages = [plan.results / PAGE for plan in ours.values()]
    yield _row("tables and page of a stage", lambda: _tables(ours, numbers), pages, len(STAGES))
    yield _row("figures of a stage", lambda: _figures(ours), (), len(STAGES))
    results = folder / RUNS[0] / "results"
    page = results / COMPARISON_PAGE
    yield _row("comparison of three runs", lambda: _compare(ours), [page])
    yield [f"{COMPARISON} of it", "", _megabytes(results / COMPARISON)]
    yield _row("front page", lambda: write_front_page(ours), [results / PAGE])


def _deltas(plans: list[StagePlan], steps: tuple[int, ...]) -> None:
    for plan in plans:
        for step in steps:
            write_deltas(plan, step)


def _tables(plans: dict[str, StagePlan], steps: tuple[int, ...]) -> None:
    for plan in plans.values():
        if plan.stage.bridge is not None:
            write_stage(plan, steps)
        found = read_stage(plan, steps)
        write_tables(found)
        write_page(plan.results / PAGE, stage_page(found, write_quality(found)))


def _figures(plans: dict[str, StagePlan]) -> None:
    for plan in plans.values():
        write_figures(plan)


def _compare(plans: dict[str, StagePlan]) -> None:
    _, errors = write_configured(plans)
    if errors:
        raise RuntimeError("; ".join(errors))


def _row(
    what: str, make: Callable[[], object], files: "list[Path] | tuple[()]", times: int = 1
) -> list[str]:
    start = time.process_time()
    make()
    seconds = (time.process_time() - start) / times
    size = sum(file.stat().st_size for file in files) / 1e6 / (times if files else 1)
    return [what, f"{seconds:.2f}", f"{size:.1f}" if files else ""]


def _megabytes(place: Path) -> str:
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return f"{sum(file.stat().st_size for file in files) / 1e6:.0f}"


def draw_run(folder: Path, name: str, steps: int) -> dict[str, StagePlan]:
    """Draw a run's results: every stage improves evenly, and begins where the stage before it ended."""
    root = folder / name
    plans = plan_stages(validate_config(_configuration(folder, name, steps), "benchmark"))
    seed = RUNS.index(name) * 100_000
    for number, plan in enumerate(plans.values()):
        about: dict[str, Any] = {"device": "cpu", "dtype": "float32", **SIZES}
        if number:
            last = {"skill": number / 4, "nats": 3 - number / 8, "seed": seed + number * steps}
            same = {"checkpoint_identity": f"{name}-{number}-{steps}", "step": steps}
            write_side(plan.bridge_folder, plan, **last, **same, **about)
        for step in range(1, steps + 1):
            gain = number + step / steps
            write_side(
                plan.step_folder(step),
                plan,
                step=step,
                skill=gain / 4 + RUNS.index(name) / 50,
                nats=3 - gain / 8,
                seed=seed + number * steps + step,
                checkpoint_identity=f"{name}-{number + 1}-{step}",
                consumed_tokens=step * 1000,
                **about,
            )
            (root / "ckpts" / plan.name / str(step)).mkdir(parents=True)
    return plans


def _configuration(folder: Path, name: str, steps: int) -> dict[str, Any]:
    suites = folder / name / "suites"
    suites.mkdir(parents=True)
    (suites / "all.yaml").write_text(
        yaml.safe_dump({key: SUITE[key] for key in ("slices", "tasks", "probes")}, sort_keys=False)
    )
    stages: dict[str, Any] = {}
    for number, stage in enumerate(STAGES):
        stages[stage] = {
            "checkpoints": str(folder / name / "ckpts" / stage),
            "steps": list(range(1, steps + 1)),
            "suites": ["all"],
        }
        if number:
            stages[stage]["bridge"] = {"stage": STAGES[number - 1], "step": steps}
            stages[stage]["objective"] = OBJECTIVE
    others = {one: {"path": str(folder / one / "results")} for one in RUNS[1:]}
    return {
        "results": str(folder / name / "results"),
        "cache": str(folder / name / "cache"),
        "suites": str(suites),
        "tokenizer": {"name": "some/tokenizer"},
        "sequence_length": 64,
        "stages": stages,
        "runs": others if name == RUNS[0] else {},
    }


def rendered(folder: Path) -> Iterator[list[str]]:
    """Yield the seconds until each kind of page is rendered."""
    if (why := missing()) is not None:
        yield [why, "", ""]
        return
    results = folder / RUNS[0] / "results"
    os.environ["TMPDIR"] = str(folder)
    with launched(folder) as browser:
        for page in (results / STAGES[-1] / PAGE, results / COMPARISON_PAGE, results / PAGE):
            start = time.perf_counter()
            with opened(browser, page):
                seconds = time.perf_counter() - start
            yield [str(page.relative_to(folder)), f"{seconds:.1f}", ""]


if __name__ == "__main__":
    main()

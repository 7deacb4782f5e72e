"""Tables, figures and pages of whatever is scored, remade when results or steps have changed."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from evaluation.checkpoints.subjects import stage_steps
from evaluation.dependencies.steps import TABLES, stage_records, tables_key
from evaluation.errors import EvaluationError
from evaluation.records import read_record
from evaluation.settings.plan import StagePlan
from evaluation.watching.runs import evaluation, last_words, run


def make_pages(
    plans: Iterable[StagePlan], configuration: Path, beat: Callable[[int], None]
) -> Iterator[tuple[str, str]]:
    """Makes what is late, each in a process of its own; gives a line for each stage by its name."""
    late = [plan for plan in plans if _is_late(plan)]
    for plan in late:
        log = plan.results / "eval_logs" / "watch_pages.log"
        for number, step in enumerate(("tables", "figures")):
            command = evaluation(step, "--config", str(configuration), "--stage", plan.name)
            if run(command, log, beat, appending=number > 0):
                yield plan.name, f"{plan.name}: no {step}: {last_words(log)}"
                break
        else:
            yield plan.name, _line(plan)
    if late:
        config = late[0].config
        pages = {"comparison": "comparison.log"} if config.runs else {}
        for step, name in {**pages, "front-page": "front_page.log"}.items():
            log, page = Path(config.results) / name, step.replace("-", " ")
            if run(evaluation(step, "--config", str(configuration)), log, beat):
                yield page, f"no {page}: {last_words(log)}"


def _is_late(plan: StagePlan) -> bool:
    """Whether there are results and the tables are of others."""
    try:
        steps = stage_steps(plan)
    except EvaluationError:  # no checkpoint yet
        return False
    records = stage_records(plan, steps)
    made = read_record(plan.results, TABLES)
    return any(records) and (made is None or made.key != tables_key(plan, steps, records))


def _line(plan: StagePlan) -> str:
    """The stage's verdict as far as it goes, and where to read more."""
    from evaluation.reporting.terminal import advice_lines

    said = advice_lines(plan)[:1] if plan.stage.bridge is not None else []
    where = f"report: {plan.results / 'report.html'}"
    return f"{plan.name}: {'; '.join([*said, where])}"

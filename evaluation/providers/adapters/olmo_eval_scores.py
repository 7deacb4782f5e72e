"""Scores of completions by olmo-eval's own scorers and metrics."""

from typing import Any

from evaluation.providers.adapters.contract import Line, Program, Score
from evaluation.providers.adapters.olmo_eval_programs import Recorder, score_by
from evaluation.providers.adapters.olmo_eval_tasks import check_environment, find_tasks

_SAMPLES_TOGETHER = ("PassAtKMetric", "PassPowKMetric")
"""Metrics that count over several samples, as this project does by itself."""


def single_metrics(task: Any) -> dict[str, Any]:
    """Return the metric that judges a single completion, one of each scorer.

    Args:
        task: A task of olmo-eval.

    Returns:
        Metrics by `metric:scorer`; of a scorer that counts over several samples, pass@1.
    """
    counted = {
        one.scorer().name: one
        for one in reversed(task.config.metrics)
        if type(one).__name__ in _SAMPLES_TOGETHER
    }
    found: dict[str, Any] = {}
    for metric in task.config.metrics:
        scorer = metric.scorer().name
        judge = counted.get(scorer, metric)
        found[f"{judge.name}:{scorer}"] = judge
    return found


def headline_of(task: Any, metrics: dict[str, Any]) -> str | None:
    """Return the metric that olmo-eval reports first.

    Args:
        task: A task of olmo-eval.
        metrics: Its `single_metrics`.

    Returns:
        Its key in `metrics`; the first one where its own headline is none of them.
    """
    from olmo_eval.runners.processing.utils import get_metric_metadata

    headline = get_metric_metadata(task)
    return headline if headline in metrics else next(iter(metrics))


def scorer(request: Line, cases: list[Line]) -> Score:
    """Make what judges completions in this process's main thread: elsewhere mathematics compare as strings.

    Args:
        request: What request.json holds.
        cases: Documents with their completions.

    Returns:
        A function of a document and a completion that gives scores by metric, or a program.
    """
    check_environment()
    _parse_once()
    tasks = find_tasks(request["task"], request.get("python"))
    metrics = {spec: single_metrics(task) for spec, task in tasks.items()}
    return lambda document, completion: _scores(
        tasks[document["part"]], metrics[document["part"]], document["doc"], completion
    )


def _parse_once() -> None:
    """Import what sympy reads LaTeX with, which would take time of the first answer."""
    import olmo_eval.evals.extract.math as mathematics

    mathematics.parse_latex("1")


def _scores(task: Any, metrics: dict[str, Any], fields: Line, completion: str) -> Line | Program:
    """Return scores; of a task that runs programs, those of one that passes and of one that fails."""
    passing, failing = Recorder(success=True), Recorder(success=False)
    passed = values_of(task, metrics, fields, completion, passing)
    if passing.code is None:
        return passed
    failed = values_of(task, metrics, fields, completion, failing)
    program, tests = passing.parts(fields["metadata"]["test"])
    return Program(program, tests, passing.seconds, passed, failed)


def values_of(
    task: Any, metrics: dict[str, Any], fields: Line, completion: str, recorder: Recorder
) -> Line:
    """Return the value of each metric of one completion.

    Args:
        task: A task of olmo-eval.
        metrics: Its `single_metrics`.
        fields: Fields of the instance.
        completion: Text that is judged.
        recorder: What answers for the environment in which programs would run.

    Returns:
        Values by key of `metrics`, those that have one.
    """
    from olmo_eval.common.types import Instance, LMOutput, LMRequest, RequestType, Response

    instance, output = Instance(**fields), LMOutput(text=completion)
    response = Response(instance, LMRequest(request_type=RequestType.COMPLETION), [output])
    task._extract_answers([response])
    for name, judge in task._get_scorers().items():
        score = score_by(judge, instance, output, recorder)
        response.scores[name] = output.metadata[f"score:{name}"] = score
    values = {key: metric.compute_instance(response) for key, metric in metrics.items()}
    return {key: value for key, value in values.items() if value is not None}

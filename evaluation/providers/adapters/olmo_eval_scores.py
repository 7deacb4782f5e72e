"""Scores of completions by olmo-eval's own scorers and metrics.

olmo-eval runs `python3 -c <program and tests>` in a container, by `execute_code`. Here its scorers get
an environment whose `execute_code` records that text, and reports that the program passed, or failed.
This project's sandbox runs the recorded programs later.

Olmo-eval wraps programs of BigCodeBench and DS-1000, which use packages, in a script. The sandbox runs
the same script without the parts that start or limit processes.
"""

import ast
import asyncio
import shlex
from typing import Any

from evaluation.providers.adapters.contract import Line, ProgramWithTests, Score
from evaluation.providers.adapters.olmo_eval_tasks import check_environment, find_tasks

_SAMPLES_TOGETHER = ("PassAtKMetric", "PassPowKMetric")
"""Metrics that count over several samples; this project does that itself."""

_SETUP = "import resource\nresource.setrlimit = lambda *limits: None\n"
"""The sandbox has limits of its own, which no program may widen."""

_END_OF_TESTS = """if test_result.failures or test_result.errors:
    sys.exit(1)
sys.exit(0)
"""

_RAISED = """for _, _trace in test_result.failures + test_result.errors:
    raise Exception(_trace.strip().splitlines()[-1])
"""


def single_metrics(task: Any) -> dict[str, Any]:
    """Return the metrics of a single completion by `metric:scorer`.

    It is pass@1 for a scorer that counts over several samples.
    """
    counted = {
        metric.scorer().name: metric
        for metric in reversed(task.config.metrics)
        if type(metric).__name__ in _SAMPLES_TOGETHER
    }
    metrics: dict[str, Any] = {}
    for metric in task.config.metrics:
        scorer = metric.scorer().name
        judge = counted.get(scorer, metric)
        metrics[f"{judge.name}:{scorer}"] = judge
    return metrics


def headline_of(task: Any, metrics: dict[str, Any]) -> str | None:
    """Return the key of the metric that olmo-eval reports first, or the first of `single_metrics`."""
    from olmo_eval.runners.processing.utils import get_metric_metadata

    headline = get_metric_metadata(task)
    return headline if headline in metrics else next(iter(metrics))


class Recorder:
    """Records the program that `execute_code` gets, and reports that its result is `success`."""

    def __init__(self, *, success: bool) -> None:
        self.success = success
        self.code: str | None = None
        self.seconds = 0.0

    async def execute_code(
        self, code: str, language: str = "python", timeout: float | None = None
    ) -> Any:
        """Record a program with its tests instead of running it; `timeout` is in seconds.

        Raises:
            ValueError: Another program was given before, or there is no limit.
        """
        from olmo_eval.common.execution import ExecutionResult

        if self.code not in (None, code) or timeout is None:
            raise ValueError("a scorer runs several programs, or one without a limit")
        self.code, self.seconds = code, timeout
        return ExecutionResult(success=self.success, exit_code=0 if self.success else 1)

    async def execute_command(self, command: str, timeout: float | None = None) -> Any:
        """Record the script that a shell command writes into a file and runs.

        Args:
            command: The command, with `printf` and `timeout` as its scorers build it.
        """
        words = shlex.split(command)
        code, seconds = words[words.index("printf") + 2], words[words.index("timeout") + 1]
        return await self.execute_code(code, timeout=float(seconds))

    def parts(self, tests: str) -> tuple[str, str]:
        """Split the recorded code into the program and the instance's tests, with which it may end."""
        code = self.code or ""
        if not tests or not code.endswith(tests):
            return _split_script(code)
        return code[: len(code) - len(tests)], tests


def _split_script(code: str) -> tuple[str, str]:
    """Return the statement that assigns a script's program, and the script that reads it.

    A script of BigCodeBench has the solution in `_code`. A script of DS-1000 writes the program, in
    `_TEST_CODE`, and another script into a file and starts it.
    """
    tree = ast.parse(code)
    named = {
        node.targets[0].id: node
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    if "_TEST_CODE" in named:
        inner = ast.literal_eval(named["_inner"].value)
        return ast.unparse(named["_TEST_CODE"]), inner
    if "_code" in named and code.endswith(_END_OF_TESTS):
        program = ast.get_source_segment(code, named["_code"]) or ""
        tests = code.removesuffix(_END_OF_TESTS) + _RAISED
        return program, _SETUP + tests.replace(program + "\n", "", 1)
    raise ValueError("a scorer runs a script that is not known")


def _score_by(judge: Any, instance: Any, output: Any, recorder: Recorder) -> float:
    """Return a scorer's score of one completion."""
    from olmo_eval.common.scorers.base import ProcessScorer
    from olmo_eval.common.scorers.execution import ExecutionScorer

    if isinstance(judge, ExecutionScorer):
        return float(asyncio.run(judge.ascore(instance, output, recorder)))
    score = judge.process_score if isinstance(judge, ProcessScorer) else judge.score
    return float(score(instance, output))


def scorer(request: Line, cases: list[Line]) -> Score:
    """Return the scorer; call it in the main thread, as others compare mathematics as strings."""
    check_environment()
    _parse_once()
    tasks = find_tasks(request["task"], request.get("python"))
    metrics = {spec: single_metrics(task) for spec, task in tasks.items()}
    return lambda document, completion: _scores(
        tasks[document["part"]], metrics[document["part"]], document["doc"], completion
    )


def _parse_once() -> None:
    """Import sympy's LaTeX parser, which would otherwise take time of the first answer."""
    import olmo_eval.evals.extract.math as mathematics

    mathematics.parse_latex("1")


def _scores(
    task: Any, metrics: dict[str, Any], fields: Line, completion: str
) -> Line | ProgramWithTests:
    """Return scores; for a task that runs programs, the scores of passing and of failing."""
    passing, failing = Recorder(success=True), Recorder(success=False)
    passed = values_of(task, metrics, fields, completion, passing)
    if passing.code is None:
        return passed
    failed = values_of(task, metrics, fields, completion, failing)
    program, tests = passing.parts(fields["metadata"]["test"])
    return ProgramWithTests(program, tests, passing.seconds, passed, failed)


def values_of(
    task: Any, metrics: dict[str, Any], fields: Line, completion: str, recorder: Recorder
) -> Line:
    """Return the value of each metric of one completion, without metrics that have none.

    Args:
        metrics: Its `single_metrics`.
        recorder: Stands in for the environment in which programs would run.
    """
    from olmo_eval.common.types import Instance, LMOutput, LMRequest, RequestType, Response

    instance, output = Instance(**fields), LMOutput(text=completion)
    response = Response(instance, LMRequest(request_type=RequestType.COMPLETION), [output])
    task._extract_answers([response])
    for name, judge in task._get_scorers().items():
        score = _score_by(judge, instance, output, recorder)
        response.scores[name] = output.metadata[f"score:{name}"] = score
    values = {key: metric.compute_instance(response) for key, metric in metrics.items()}
    return {key: value for key, value in values.items() if value is not None}

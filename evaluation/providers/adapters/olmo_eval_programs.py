"""Programs that olmo-eval's scorers run: taken down here, and run in this project's sandbox.

olmo-eval runs `python3 -c <program and tests>` in a container, behind `execute_code`. Its scorers get
an environment whose `execute_code` keeps that text, and says that the program passed, or that it failed.
"""

import asyncio
import shlex
from typing import Any

from evaluation.providers.adapters.contract import Refused, not_taken
from evaluation.providers.adapters.olmo_eval_packages import split_script

_WITH_PACKAGES = {
    "bigcodebench": "those that its requirements-eval.txt lists",
    "ds1000": "Python 3.10 with PyTorch, TensorFlow and others in old versions",
}
"""Tasks whose programs use packages, by the begin of their names, and which."""

_OTHER_LANGUAGES = "its programs are in C++, Java, JavaScript, PHP, Rust and shell"


class Recorder:
    """What `execute_code` was asked to run.

    Args:
        success: What it answers, whatever the program is.
    """

    def __init__(self, *, success: bool) -> None:
        self.success = success
        self.code: str | None = None
        self.seconds = 0.0

    async def execute_code(
        self, code: str, language: str = "python", timeout: float | None = None
    ) -> Any:
        """Keep a program instead of running it.

        Args:
            code: Source of the program with its tests.
            language: Language of the program.
            timeout: Seconds that it may take.

        Returns:
            The answer that was settled before.

        Raises:
            ValueError: Another program was given before, or there is no limit.
        """
        from olmo_eval.common.execution import ExecutionResult

        if self.code not in (None, code) or timeout is None:
            raise ValueError("a scorer runs several programs, or one without a limit")
        self.code, self.seconds = code, timeout
        return ExecutionResult(success=self.success, exit_code=0 if self.success else 1)

    async def execute_command(self, command: str, timeout: float | None = None) -> Any:
        """Keep the script that a shell command writes into a file and runs.

        Args:
            command: The command, with `printf` and `timeout` as its scorers build it.
            timeout: Seconds that the command may take.

        Returns:
            The answer that was settled before.
        """
        words = shlex.split(command)
        code, seconds = words[words.index("printf") + 2], words[words.index("timeout") + 1]
        return await self.execute_code(code, timeout=float(seconds))

    def parts(self, tests: str) -> tuple[str, str]:
        """Split what was kept.

        Args:
            tests: The instance's tests, with which the code may end.

        Returns:
            The program, and its tests.
        """
        code = self.code or ""
        if not tests or not code.endswith(tests):
            return split_script(code)
        return code[: len(code) - len(tests)], tests


def score_by(judge: Any, instance: Any, output: Any, recorder: Recorder) -> float:
    """Return what a scorer says of one completion.

    Args:
        judge: The scorer.
        instance: The instance that was asked.
        output: The completion, with its extracted answer.
        recorder: What answers for the environment in which programs would run.

    Returns:
        The score.
    """
    from olmo_eval.common.scorers.base import ProcessScorer
    from olmo_eval.common.scorers.execution import ExecutionScorer

    if isinstance(judge, ExecutionScorer):
        return float(asyncio.run(judge.ascore(instance, output, recorder)))
    score = judge.process_score if isinstance(judge, ProcessScorer) else judge.score
    return float(score(instance, output))


def check_programs(spec: str, title: str, scorers: list[Any], *, has_packages: bool) -> None:
    """Refuse programs in another language than Python, and those that need packages and have none.

    Args:
        spec: Name of the task there.
        title: Name of the provider.
        scorers: Scorers of the task.
        has_packages: Whether an environment with packages is named.

    Raises:
        Refused: The programs are such.
    """
    from olmo_eval.common.scorers import CodeExecutionScorer
    from olmo_eval.common.scorers.execution import ExecutionScorer

    running = [one for one in scorers if isinstance(one, ExecutionScorer)]
    if not running:
        return
    packages = _WITH_PACKAGES.get(spec.partition(":")[0])
    if packages is not None and not has_packages:
        raise Refused(
            f"the programs of {spec} use packages ({packages}); give the task `python: <the Python of an "
            "environment that has them>`"
        )
    why = None
    if spec.startswith("multipl_e"):
        why = _OTHER_LANGUAGES
    elif packages is None and any(
        type(one).ascore is not CodeExecutionScorer.ascore or one.language != "python"
        for one in running
    ):
        why = "its programs are run in a way that this project does not know"
    if why is not None:
        raise not_taken(spec, title, why)


def special_tokens(prompts: list[str]) -> list[str]:
    """Return the tokens by which prompts mark the place of code that is to be filled in.

    Args:
        prompts: Prompts of a task.

    Returns:
        Those of the three tokens that stand in a prompt.
    """
    from olmo_eval.evals.constants.code import OLMO_FIM

    marks = (OLMO_FIM.lead_token, OLMO_FIM.center_token, OLMO_FIM.end_token)
    return [mark for mark in marks if any(mark in prompt for prompt in prompts)]


def cut(text: str, stops: list[str]) -> str:
    """Cut a gold at the first stop string, as a completion would be cut.

    Args:
        text: The gold.
        stops: Stop strings.

    Returns:
        What is before.
    """
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]

"""What a run is asked to make, looked at before anything is planned.

Snakemake's own answer to an unknown target ("No rule to produce stage5") names none that there is.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from evaluation.wording import did_you_mean

FIXED = ("all", "prefill")


def check_targets_first(
    workflow: Any,
    stages: Sequence[str],
    results: str,
    require: Callable[[Sequence[str]], Iterable[str]],
    keep: Callable[[], None],
) -> None:
    """Has the targets of `workflow` checked as soon as they are known, which parsing is not.

    `require` gets those that are known, and what it says ends a dry run; before any other, `keep` is
    called. Input functions are no place for it: where an old file is there, Snakemake takes that and
    forgets what they raise.
    """
    from snakemake.exceptions import WorkflowError
    from snakemake.logging import logger

    execute = workflow.execute

    def checked(*, executor_plugin: Any, **others: Any) -> Any:
        rules = list(workflow.rules)
        for target in unknown(workflow.dag_settings.targets, rules):
            raise WorkflowError(unknown_target(target, stages, results))
        said: Iterable[str] = ()
        if workflow.is_main_process:
            said = require(sorted(workflow.dag_settings.targets))
        is_dry = executor_plugin.common_settings.dryrun_exec
        if not is_dry:
            keep()
        done = execute(executor_plugin=executor_plugin, **others)
        if is_dry:
            for line in said:
                logger.info(line)
        return done

    workflow.execute = checked


def unknown(targets: Iterable[str], rules: Sequence[Any]) -> list[str]:
    """The targets that are neither a rule nor a file that a rule makes."""
    names = {rule.name for rule in rules}
    return [
        target
        for target in targets
        if target not in names and not any(rule.is_producer(target) for rule in rules)
    ]


def unknown_target(target: str, stages: Sequence[str], results: str) -> str:
    hint = did_you_mean(target, [*stages, *FIXED])
    return (
        f"nothing here is called {target!r}{hint}; targets are {', '.join(FIXED)}, the stages "
        f"{', '.join(stages)}, and files such as "
        f"{results}/{stages[0]}/summary.csv, with the results folder as it is configured"
    )

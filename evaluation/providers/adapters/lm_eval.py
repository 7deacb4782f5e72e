"""Tasks of lm-evaluation-harness: its requests, its filters and its metrics, without its models."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from evaluation.errors import SourceError, did_you_mean
from evaluation.providers.adapters import contract
from evaluation.providers.adapters.contract import Line, RefusedTask

_REFUSED = {
    "class": "it is a program of its own, not a description",
    "unsafe_code": "its metric runs the programs that a model writes",
    "doc_to_image": "it asks about images",
    "doc_to_audio": "it asks about sound",
}
"""Keys of descriptions of tasks that are not supported, and why."""


def parts(request: Line) -> Iterator[contract.TaskPart]:
    """Yield a task, or the tasks of a group, rendered by the requests that the harness itself makes."""
    chat, choices = request["chat"], request["kind"] == "choices"
    for name, task in _load(request).items():
        contract.check_section(name, request["kind"], ranks=task.OUTPUT_TYPE == "multiple_choice")
        if request["num_fewshot"] is not None:
            task.set_config("num_fewshot", request["num_fewshot"])
        task.set_fewshot_seed(seed=1234)
        task.build_all_requests(
            limit=request["limit"],
            apply_chat_template=chat,
            fewshot_as_multiturn=chat,
            chat_template=(lambda turns, **_: json.dumps(turns)) if chat else None,
        )
        lines = []
        for number, group in groupby(task.instances, lambda asked: asked.doc_id):
            requests = [*group]
            more = _choices(task, requests) if choices else _prompt(task, requests[0], chat)
            lines.append({"id": f"{name}/{number}", "part": name, **more})
        kwargs = task.config.generation_kwargs or {}
        until = kwargs.get("until") or []
        yield contract.TaskPart(
            name=name,
            stop=[stop for stop in ([until] if isinstance(until, str) else until) if stop],
            max_new_tokens=kwargs.get("max_gen_toks"),
            num_fewshot=task.config.num_fewshot or 0,
            metrics={metric: bool(up) for metric, up in task.higher_is_better().items()},
            documents=lines,
            count=len(task.eval_docs),
        )


def _load(request: Line) -> dict[str, Any]:
    """Load the requested task, or the tasks of a group, by name; raise RefusedTask if that cannot be.

    Random draws are seeded as the harness seeds them. To score, no data are read.
    """
    import datasets
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.tasks import TaskManager

    def checked(task: Any, *arguments: Any, **options: Any) -> None:
        _check(task.config.task, vars(task.config))
        if "cases" in request:
            task.dataset = _given_documents(task, request["cases"])
        else:
            download(task, *arguments, **options)

    def examples_if_there(task: Any) -> Any:
        shots = request.get("num_fewshot")
        try:  # also without shots, as tasks may draw when they process rows
            return examples(task)
        except SourceError:  # a mirror may lack the split that nothing else needs
            if task.config.num_fewshot if shots is None else shots:
                raise
            return None

    name, manager = request["task"], TaskManager()
    if name not in manager.task_index:
        raise RefusedTask(f"it has no task {name!r}{did_you_mean(name, manager.all_tasks)}")
    _check(name, manager.task_index[name].cfg or {})  # before its code is imported
    download, examples = ConfigurableTask.download, ConfigurableTask.fewshot_docs
    ConfigurableTask.download, ConfigurableTask.fewshot_docs = checked, examples_if_there
    datasets.disable_caching()  # a cache would return an earlier random draw
    contract.seed(0)
    tasks: dict[str, Any] = manager.load([name])["tasks"]
    for part, task in tasks.items():
        if type(task) is not ConfigurableTask:
            raise RefusedTask(f"{part} is not supported, as {_REFUSED['class']}")
    return tasks


def _check(name: str, config: Mapping[str, Any]) -> None:
    """Raise RefusedTask for a task that is not supported, by the keys of its description."""
    steps = [step for asked in config.get("filter_list") or [] for step in asked["filter"]]
    refused = [why for key, why in _REFUSED.items() if config.get(key)]
    if config.get("output_type") in ("loglikelihood", "loglikelihood_rolling"):
        refused.append("it measures the likelihood of one given text")
    if any(step["function"] in ("majority_vote", "take_first_k") for step in steps):
        refused.append("its metric judges several samples of a prompt together")
    if any(metric.get("hf_evaluate") for metric in config.get("metric_list") or []):
        refused.append("its metric is code that is fetched when it is used")
    if refused:
        raise RefusedTask(f"{name} is not supported, as {refused[0]}")


def scorer(request: Line) -> contract.Score:
    """Return the function that scores completions by the task's filters and metrics."""
    tasks = _load(request)
    return lambda document, text: _scores(tasks[document["part"]], document["doc"], text)


def _given_documents(task: Any, cases: list[Any]) -> Any:
    """Return a dataset of one document of the cases for any split, which is already processed."""
    import datasets

    documents = [document for document, _ in cases]
    of_part = (document for document in documents if document["part"] == task.config.task)
    rows = datasets.Dataset.from_list([next(of_part, documents[0])["doc"]])
    task.config.process_docs, task.fewshot_cfg.process_docs = None, None
    return defaultdict(lambda: rows)


def _scores(task: Any, doc: Line, completion: str) -> Line:
    """Return scores by `metric,filter`, or by `metric` where the task has no filters of its own."""
    from lm_eval.api.instance import Instance

    scores = {}
    for pipeline in task._filters:
        instance = Instance("generate_until", doc, ("", {}), 0, ("", 0, 1))
        instance.resps = [completion]
        pipeline.apply([instance])
        text = instance.filtered_resps[pipeline.name]
        for metric, value in task.process_results(doc, [text]).items():
            scores[metric if pipeline.name == "none" else f"{metric},{pipeline.name}"] = value
    return scores


def _prompt(task: Any, asked: Any, chat: bool) -> Line:
    context, _ = asked.arguments
    turns = json.loads(context) if chat else None
    if turns and turns[-1]["role"] != "user":
        raise RefusedTask(
            f"{task.config.task} begins the answer itself, which a chat does not allow; set `chat: false`"
        )
    return {
        "prompt": None if chat else context,
        "messages": turns,
        "document": {"part": task.config.task, "doc": dict(asked.doc)},
        "gold": _gold(task, asked.doc),
    }


def _choices(task: Any, requests: list[Any]) -> Line:
    doc = requests[0].doc
    pairs, count = [asked.arguments[:2] for asked in requests], len(task.doc_to_choice(doc))
    right = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
    if isinstance(right, str) and right in task.doc_to_choice(doc):
        right = task.doc_to_choice(doc).index(right)
    if not isinstance(right, int) or right < 0:
        raise RefusedTask(f"{task.config.task} has a hidden label, or several: {right!r}")
    return {
        "choices": pairs[:count],
        "unconditional": pairs[count:] or None,
        "right": right,
        "fields": contract.plain_fields(doc),
    }


def _gold(task: Any, doc: Any) -> str | None:
    target = task.doc_to_target(doc)
    if isinstance(target, list):
        target = target[0] if target else None
    if isinstance(target, int) and task.config.doc_to_choice is not None:
        if target < 0:
            raise RefusedTask(f"{task.config.task} has hidden answers: a label is {target}")
        target = task.doc_to_choice(doc)[target]
    return None if target is None else str(target)


if __name__ == "__main__":
    contract.main("lm_eval", parts, scorer)

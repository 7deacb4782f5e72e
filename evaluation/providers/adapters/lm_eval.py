"""Tasks of lm-evaluation-harness: its prompts, its filters and its metrics, without its models."""

import json
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from evaluation.providers.adapters.contract import (
    Line,
    RefusedTask,
    Score,
    check_section,
    common_stop,
    main,
    no_such_task,
    not_supported,
    plain_fields,
    seed,
)

_SEED = 1234
"""lm-evaluation-harness's default seed for drawing solved examples."""

_FETCHED = "its metric is code that is fetched when it is used"

_REFUSED = {
    "class": "it is a program of its own, not a description",
    "unsafe_code": "its metric runs the programs that a model writes",
    "doc_to_image": "it asks about images",
    "doc_to_audio": "it asks about sound",
}
"""Keys of descriptions of tasks that are not supported, and why."""


def render(request: Line) -> tuple[Line, list[Line]]:
    """Render a task of lm-evaluation-harness."""
    choices, documents = request["kind"] == "choices", []
    tasks = _load(request, _seeded_downloads)
    for name, task in tasks.items():
        check_section(name, request["kind"], ranks=task.OUTPUT_TYPE == "multiple_choice")
        if request["num_fewshot"] is not None:
            task.set_config("num_fewshot", request["num_fewshot"])
        task.set_fewshot_seed(seed=_SEED)
        seed(f"{name}/documents")  # some tasks shuffle a document's choices whenever it is read
        for number, doc in zip(range(request["limit"]), task.eval_docs, strict=False):
            place = {"id": f"{name}/{number}", "part": name}
            more = _choices(task, doc) if choices else _prompt(task, doc, request["chat"])
            documents.append(place | more)
    return _info(tasks), documents


def _load(request: Line, prepare: Any) -> dict[str, Any]:
    """Load the requested task, or the tasks of a group, by name; raise RefusedTask if that cannot be.

    `prepare` is called with the class of tasks, before any task reads its data.
    """
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.tasks import TaskManager

    name, manager = request["task"], TaskManager()
    if name not in manager.task_index:
        raise no_such_task(name, manager.all_tasks)
    _check(name, manager.task_index[name].cfg or {})  # before its code is imported
    _without_fetched_metrics(name)
    prepare(ConfigurableTask, request)
    try:
        tasks: dict[str, Any] = manager.load([name])["tasks"]
    except ImportError as error:
        raise RefusedTask(
            f"{name} needs what the environment of lm_eval lacks ({error}); install it there"
        ) from None
    for part, task in tasks.items():
        _check(part, vars(task.config) if type(task) is ConfigurableTask else {"class": type(task)})
    return tasks


def _check(name: str, config: Mapping[str, Any]) -> None:
    """Raise RefusedTask for a task that is not supported, by the keys of its description."""
    steps = [step for asked in config.get("filter_list") or [] for step in asked["filter"]]
    refused = [why for key, why in _REFUSED.items() if config.get(key)]
    if config.get("output_type") in ("loglikelihood", "loglikelihood_rolling"):
        refused.append("it measures the likelihood of one given text")
    if any(asked.get("hf_evaluate") for asked in config.get("metric_list") or []):
        refused.append(_FETCHED)
    if any(step["function"] in ("majority_vote", "take_first_k") for step in steps):
        refused.append("its metric judges several samples of a prompt together")
    if refused:
        raise not_supported(name, refused[0])


def _without_fetched_metrics(name: str) -> None:
    def load(*_: Any, **__: Any) -> Any:
        raise not_supported(name, _FETCHED)

    sys.modules["evaluate"] = ModuleType("evaluate")
    sys.modules["evaluate"].load = load  # type: ignore[attr-defined]


def _seeded_downloads(tasks: Any, request: Line) -> None:
    """Seed the random draws of tasks while they load, and read no splits that are not needed."""
    import datasets

    datasets.disable_caching()  # a cache would return an earlier random draw
    download, examples, shots = tasks.download, tasks.fewshot_docs, request["num_fewshot"]

    def seeded(task: Any, *arguments: Any, **options: Any) -> None:
        seed(f"{task.config.task}/data")
        download(task, *arguments, **options)

    def if_needed(task: Any) -> Any:
        seed(f"{task.config.task}/solved examples")
        return examples(task) if (task.config.num_fewshot if shots is None else shots) else None

    tasks.download, tasks.fewshot_docs = seeded, if_needed


def scorer(request: Line) -> Score:
    """Build the tasks from the verified documents, so that nothing is fetched."""
    tasks = _load(request, _given_documents)
    return lambda document, completion: _scores(
        tasks[document["part"]], document["doc"], completion
    )


def _given_documents(tasks: Any, request: Line) -> None:
    """Give each task a dataset of one document of the request, which is already processed."""
    import datasets

    cases = [document for document, _ in reversed(request["cases"])]
    first = {document["part"]: document["doc"] for document in cases}

    def download(task: Any, *_: Any, **__: Any) -> None:
        rows = datasets.Dataset.from_list([first.get(task.config.task, cases[-1]["doc"])])
        config, shots = task.config, task.fewshot_cfg
        config.process_docs, shots.process_docs = None, None
        names = {config.test_split, config.validation_split, config.training_split, shots.split}
        task.dataset = datasets.DatasetDict({str(name): rows for name in names - {None}})

    tasks.download = download


def _scores(task: Any, doc: Line, completion: str) -> Line:
    """Return scores by `metric,filter`, or by `metric` where the task has no filters of its own."""
    from lm_eval.api.instance import Instance

    scores = {}
    for pipeline in task._filters:
        instance = Instance("generate_until", doc, ("", {}), 0, ("", 0, 1))
        instance.resps = [completion]
        pipeline.apply([instance])
        text = instance.filtered_resps[pipeline.name]
        seed(json.dumps(doc, sort_keys=True))
        for metric, value in task.process_results(doc, [text]).items():
            scores[metric if pipeline.name == "none" else f"{metric},{pipeline.name}"] = value
    return scores


def _prompt(task: Any, doc: Any, chat: bool) -> Line:
    prefix = task.doc_to_prefix(doc)
    if chat and prefix:
        raise RefusedTask(
            f"{task.config.task} begins the answer itself, which a chat does not allow; set `chat: false`"
        )
    context = task.fewshot_context(
        doc,
        num_fewshot=task.config.num_fewshot or 0,
        apply_chat_template=chat,
        fewshot_as_multiturn=chat,
        chat_template=(lambda turns, **_: json.dumps(turns)) if chat else None,
        gen_prefix=prefix,
    )
    return {
        "prompt": None if chat else context,
        "messages": json.loads(context) if chat else None,
        "document": {"part": task.config.task, "doc": dict(doc)},
        "gold": _gold(task, doc),
    }


def _choices(task: Any, doc: Any) -> Line:
    shots, prefix = task.config.num_fewshot or 0, task.doc_to_prefix(doc)
    context = task.fewshot_context(doc, num_fewshot=shots, gen_prefix=prefix)
    requests = task.construct_requests(doc=doc, ctx=context, metadata=("", 0, 1))
    pairs, count = [list(asked.arguments[:2]) for asked in requests], len(task.doc_to_choice(doc))
    return {
        "choices": pairs[:count],
        "unconditional": pairs[count:] or None,
        "right": _right(task, doc),
        "fields": plain_fields(doc),
    }


def _right(task: Any, doc: Any) -> int:
    right = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
    if isinstance(right, str) and right in task.doc_to_choice(doc):
        right = task.doc_to_choice(doc).index(right)
    if not isinstance(right, int):
        raise RefusedTask(f"{task.config.task} needs one right choice, and has {right!r}")
    return right


def _gold(task: Any, doc: Any) -> str | None:
    target = task.doc_to_target(doc)
    if isinstance(target, list):
        target = target[0] if target else None
    if isinstance(target, int) and task.config.doc_to_choice is not None:
        if target < 0:
            raise RefusedTask(f"{task.config.task} has hidden answers: a label is {target}")
        target = task.doc_to_choice(doc)[target]
    return None if target is None else str(target)


def _info(tasks: Mapping[str, Any]) -> Line:
    kwargs = {name: task.config.generation_kwargs or {} for name, task in tasks.items()}
    limits = [most for asked in kwargs.values() if (most := asked.get("max_gen_toks")) is not None]
    return {
        "stop": common_stop({name: _stops(asked.get("until")) for name, asked in kwargs.items()}),
        "max_new_tokens": max(limits, default=None),
        "num_fewshot": {name: task.config.num_fewshot or 0 for name, task in tasks.items()},
        "metrics": {
            m: bool(up) for task in tasks.values() for m, up in task.higher_is_better().items()
        },
        "documents": sum(len(task.eval_docs) for task in tasks.values()),
    }


def _stops(until: str | list[str] | None) -> list[str]:
    return [until] if isinstance(until, str) else [stop for stop in until or [] if stop]


if __name__ == "__main__":
    main("lm_eval", render, scorer)

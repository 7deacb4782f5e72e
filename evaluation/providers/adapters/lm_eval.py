"""Tasks of lm-evaluation-harness: its prompts, its filters and its metrics, without its models."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import Line, RefusedTask, Score, main, seed
from evaluation.providers.adapters.data import check_tasks, read_mirrors
from evaluation.providers.adapters.lm_eval_tasks import load_tasks
from evaluation.providers.adapters.mirror_files import find_mirror
from evaluation.providers.adapters.rendering import (
    check_section,
    common_stop,
    plain_fields,
    write_documents,
)
from evaluation.providers.adapters.task_files import read_user_files

_SEED = 1234
"""lm-evaluation-harness's default seed for drawing solved examples."""

_FORMATS = ("arrow", "csv", "json", "parquet", "text")
"""Values in place of a dataset's id where a task names its files."""


def _check(request: Line) -> None:
    """Refuse tasks that lm-evaluation-harness lacks, and data that is not available."""
    check_tasks(request, _absent_data)


class _DatasetName(BaseException):
    """Reports a task's dataset in place of loading it."""


def _absent_data(request: Line) -> list[str]:
    """Return the dataset of a task, or of the first of a group, if it has no mirror."""
    from lm_eval.api.task import ConfigurableTask

    def report(task: Any, *_: Any, **__: Any) -> None:
        raise _DatasetName(task.DATASET_PATH)

    ConfigurableTask.download = report
    try:
        load_tasks(request)
    except _DatasetName as name:
        path = str(name)
        is_mirrored = find_mirror(path, request["mirrors"]) is not None
        return [] if is_mirrored or path in _FORMATS or Path(path).exists() else [path]
    return []


def _render(request: Line, folder: Path) -> Line:
    """Render a task of lm-evaluation-harness."""
    files = read_user_files(request)
    sources = read_mirrors(request["mirrors"])
    tasks = _load_for_documents(request)
    for name, task in tasks.items():
        check_section(name, request["kind"], ranks=task.OUTPUT_TYPE == "multiple_choice")
    documents: list[Line] = []
    for name, task in tasks.items():
        if request["num_fewshot"] is not None:
            task.set_config("num_fewshot", request["num_fewshot"])
        if request["kind"] == "choices":
            documents += _choices(name, task, request["limit"])
        else:
            documents += _documents(name, task, request["chat"], request["limit"])
    write_documents(folder, documents)
    sources["read"] += files.pop("read")
    return {**_meta(tasks), "kind": request["kind"], **sources, **files}


def _load_for_documents(request: Line) -> dict[str, Any]:
    """Load tasks for rendering: seed their random draws, and do not read unneeded splits."""
    import datasets
    from lm_eval.api.task import ConfigurableTask

    datasets.disable_caching()  # a cache would return an earlier random draw
    download, examples = ConfigurableTask.download, ConfigurableTask.fewshot_docs
    shots = request["num_fewshot"]

    def seeded(task: Any, *arguments: Any, **options: Any) -> None:
        seed(f"{task.config.task}/data")
        download(task, *arguments, **options)

    def if_needed(task: Any) -> Any:
        seed(f"{task.config.task}/solved examples")
        return examples(task) if (task.config.num_fewshot if shots is None else shots) else None

    ConfigurableTask.download, ConfigurableTask.fewshot_docs = seeded, if_needed
    return load_tasks(request)


def _scorer(request: Line, cases: list[Line]) -> Score:
    """Build the tasks from the verified documents, so that nothing is fetched."""
    from lm_eval.api.task import ConfigurableTask

    first: dict[str, Any] = {}
    for case in cases:
        first.setdefault(case["document"]["part"], case["document"]["doc"])

    def download(task: Any, *_: Any, **__: Any) -> None:
        _stand_in(task, first)

    ConfigurableTask.download = download
    read_user_files(request)
    tasks = load_tasks(request)
    return lambda document, completion: _scores(tasks[document["part"]], document, completion)


def _stand_in(task: Any, documents: Mapping[str, Any]) -> None:
    """Give a task a dataset of one document, which is already processed."""
    import datasets

    given = documents.get(task.config.task, next(iter(documents.values())))
    rows = datasets.Dataset.from_list([given])
    config = task.config
    config.process_docs, task.fewshot_cfg.process_docs = None, None
    splits = (config.test_split, config.validation_split, config.training_split)
    names = {*splits, task.fewshot_cfg.split} - {None}
    task.dataset = datasets.DatasetDict({str(name): rows for name in names})


def _scores(task: Any, document: Line, completion: str) -> Line:
    """Return scores by `metric,filter`, or by `metric` where the task has no filters of its own."""
    from lm_eval.api.instance import Instance

    doc, scores = document["doc"], {}
    for pipeline in task._filters:
        instance = Instance("generate_until", doc, ("", {}), 0, ("", 0, 1))
        instance.resps = [completion]
        pipeline.apply([instance])
        text = instance.filtered_resps[pipeline.name]
        seed(json.dumps(doc, sort_keys=True))
        for metric, value in task.process_results(doc, [text]).items():
            scores[metric if pipeline.name == "none" else f"{metric},{pipeline.name}"] = value
    return scores


def _drawn(name: str, task: Any) -> Any:
    """Return a task's documents; some tasks shuffle a document's choices whenever it is read."""
    seed(f"{name}/documents")
    return task.eval_docs


def _documents(name: str, task: Any, chat: bool, limit: int) -> Iterator[Line]:
    task.set_fewshot_seed(seed=_SEED)
    shots = task.config.num_fewshot or 0
    for number, doc in enumerate(_drawn(name, task)):
        if number == limit:
            return
        prefix = task.doc_to_prefix(doc)
        if chat and prefix:
            raise RefusedTask(
                f"{name} begins the answer itself, which a chat does not allow; set `chat: false`"
            )
        context = task.fewshot_context(
            doc,
            num_fewshot=shots,
            apply_chat_template=chat,
            fewshot_as_multiturn=chat,
            chat_template=_as_messages if chat else None,
            gen_prefix=prefix,
        )
        yield {
            "id": f"{name}/{number}",
            "part": name,
            "prompt": None if chat else context,
            "messages": json.loads(context) if chat else None,
            "document": {"part": name, "doc": dict(doc)},
            "gold": _gold(task, doc),
        }


def _choices(name: str, task: Any, limit: int) -> Iterator[Line]:
    task.set_fewshot_seed(seed=_SEED)
    for number, doc in enumerate(_drawn(name, task)):
        if number == limit:
            return
        shots = task.config.num_fewshot or 0
        context = task.fewshot_context(doc, num_fewshot=shots, gen_prefix=task.doc_to_prefix(doc))
        requests = task.construct_requests(doc=doc, ctx=context, metadata=(name, number, 1))
        count = len(task.doc_to_choice(doc))
        yield {
            "id": f"{name}/{number}",
            "part": name,
            "choices": [list(request.arguments[:2]) for request in requests[:count]],
            "unconditional": [list(request.arguments[:2]) for request in requests[count:]] or None,
            "right": _right(name, number, task, doc),
            "fields": plain_fields(doc),
        }


def _right(name: str, number: int, task: Any, doc: Any) -> int:
    right = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
    if isinstance(right, str) and right in task.doc_to_choice(doc):
        right = task.doc_to_choice(doc).index(right)
    if not isinstance(right, int):
        raise RefusedTask(f"{name}/{number} needs one right choice, and has {right!r}")
    return right


def _as_messages(messages: Any, add_generation_prompt: bool = True) -> str:
    """Return the turns as JSON, in place of a chat template."""
    return json.dumps(messages)


def _gold(task: Any, doc: Any) -> str | None:
    target = task.doc_to_target(doc)
    if isinstance(target, list):
        target = target[0] if target else None
    if isinstance(target, int) and task.config.doc_to_choice is not None:
        target = task.doc_to_choice(doc)[target]
    return None if target is None else str(target)


def _meta(tasks: Mapping[str, Any]) -> Line:
    stops = {name: _stops(task) for name, task in tasks.items()}
    limits = [
        task.config.generation_kwargs.get("max_gen_toks")
        for task in tasks.values()
        if task.config.generation_kwargs
    ]
    given = [limit for limit in limits if limit is not None]
    return {
        "stop": common_stop(stops),
        "max_new_tokens": max(given) if given else None,
        "num_fewshot": {name: task.config.num_fewshot or 0 for name, task in tasks.items()},
        "metrics": {
            m: bool(up) for task in tasks.values() for m, up in task.higher_is_better().items()
        },
        "documents": sum(len(task.eval_docs) for task in tasks.values()),
    }


def _stops(task: Any) -> list[str]:
    until = (task.config.generation_kwargs or {}).get("until") or []
    return [until] if isinstance(until, str) else [stop for stop in until if stop]


if __name__ == "__main__":
    main("lm_eval", _render, _scorer, _check, ("datasets", "lm_eval.tasks"))

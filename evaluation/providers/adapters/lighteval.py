"""Tasks of lighteval: its prompts and its metrics, without its registry, pipeline and models.

Its registry imports modules that access the network and unpickle answers, so only the others are imported.
"""

import importlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
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

_OTHER = "its metric asks another model"

_REFUSED = {
    "lcb": "its metric runs the programs that a model writes, and unpickles their tests",
    "tiny": "its metric unpickles what it downloads",
    "mtbench": "it has several turns, and its metric asks another model",
    "mixeval": _OTHER,
    "simpleqa": _OTHER,
    "aaomniscience": _OTHER,
    "hle": _OTHER,
    "slrbench": "its metric runs the programs that a model writes",
}
"""Beginnings, without `_`, of the names of tasks and modules that are not imported."""

_MODELS = {"BertScore", "BLEURT", "Faithfulness"}
"""Metrics that are models."""

_FIELDS = ("query", "choices", "gold_index", "instruction", "specific", "task_name", "id")
"""Fields of a document that metrics read."""


def render(request: Line) -> tuple[Line, list[Line]]:
    """Render a task of lighteval."""
    kind, configs, total = request["kind"], _configs(request), 0
    documents: list[Line] = []
    metrics: dict[str, Any] = {}
    for name, config in configs.items():
        config.num_fewshots = request["num_fewshot"] or 0
        check_section(name, kind, ranks=_ranks(name, config))
        metrics |= _metrics(name, config) if kind == "generative" else {}
        lines = _documents(name, config, kind, request["chat"])
        total += len(lines)
        documents += lines[: request["limit"]]
    return {**_info(configs, kind, metrics), "documents": total}, documents


def _configs(request: Line) -> dict[str, Any]:
    """Return the requested task, or the tasks whose names begin with its name and a colon, by name."""
    import nltk

    nltk.download = lambda *_, **__: True  # modules download its data when they are imported
    name = request["task"]
    seed(f"{name}/data")
    if why := _refusal(name):
        raise not_supported(name, why)
    table = _tables()
    matching = {key: c for key, c in table.items() if key == name or key.startswith(f"{name}:")}
    if not matching:
        raise no_such_task(name, table)
    return {name: matching[name]} if name in matching else matching


def _refusal(name: str) -> str | None:
    plain = name.replace("_", "")
    return next((why for begin, why in _REFUSED.items() if plain.startswith(begin)), None)


def _tables() -> dict[str, Any]:
    """Return lighteval's tasks by name, but for those of modules that are not imported."""
    from lighteval.tasks import tasks
    from lighteval.tasks.tasks.ifbench import instructions

    instructions.RESOURCES_DOWNLOADED = (
        True  # otherwise each instruction would install a spaCy model
    )
    folder = Path(tasks.__path__[0])
    table: dict[str, Any] = {}
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/main.py")]):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        if not _refusal(module):
            loaded = importlib.import_module(f"{tasks.__name__}.{module}")
            table |= {task.name: task for task in getattr(loaded, "TASKS_TABLE", ())}
    return table


def scorer(request: Line) -> Score:
    """Return the function that scores completions by the task's metrics."""
    metrics = {name: _metrics(name, config) for name, config in _configs(request).items()}
    return lambda document, completion: _scores(
        metrics[document["part"]], document["doc"], completion
    )


def _scores(metrics: Mapping[str, Any], fields: Line, completion: str) -> Line:
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc
    from lighteval.utils.utils import remove_reasoning_tags

    answer_text = remove_reasoning_tags(completion, [("<think>", "</think>")])
    scores: Line = {}
    for metric in metrics.values():
        doc = Doc(**json.loads(json.dumps(fields)))  # metrics write into it
        seed(json.dumps(fields, sort_keys=True))
        answer = ModelResponse(text=[completion], text_post_processed=[answer_text])
        for name, value in metric.compute_sample(doc=doc, model_response=answer).items():
            scores[_plain_name(name)] = value
    return scores


def _plain_name(metric: str) -> str:
    """Return a metric's name without parameters: with one sample, pass@k is the same for every k."""
    return metric.partition(":")[0]


def _metrics(name: str, config: Any) -> dict[str, Any]:
    """Return the metrics of a single sample by name; raise RefusedTask if there are none."""
    from lighteval.metrics import metrics_sample as kinds
    from lighteval.tasks.requests import SamplingMethod

    metrics: dict[str, Any] = {}
    why = "it measures likelihoods of more than one kind"
    for metric in config.metrics:
        judge = metric.sample_level_fn
        if isinstance(judge, kinds.JudgeLLM):
            raise not_supported(name, _OTHER)
        if metric.category != SamplingMethod.GENERATIVE:
            continue
        if isinstance(judge, kinds.MajAtN | kinds.GPassAtK):
            why = "its metric judges several samples of a prompt together"
        elif type(judge).__name__ in _MODELS:
            why = "its metric is another model"
        elif metric.batched_compute or not isinstance(judge, kinds.SampleLevelComputation):
            why = "its metric judges all prompts together"
        else:
            if isinstance(judge, kinds.PassAtK | kinds.AvgAtN):
                judge.n = 1
            if isinstance(judge, kinds.PassAtK):
                judge.k = 1
            metrics[str(metric.metric_name)] = metric
    if not metrics:
        raise not_supported(name, why)
    return metrics


def _ranks(name: str, config: Any) -> bool:
    """Return whether a task measures only the likelihoods of choices; raise RefusedTask if of one text."""
    from lighteval.metrics.sample_preparator import TargetPerplexityPreparator
    from lighteval.tasks.requests import SamplingMethod

    kinds = {metric.category for metric in config.metrics}
    given = [isinstance(m.sample_level_fn, TargetPerplexityPreparator) for m in config.metrics]
    if kinds == {SamplingMethod.PERPLEXITY} or all(given):
        raise not_supported(name, "it measures the likelihood of one given text")
    return kinds == {SamplingMethod.LOGPROBS}


def _documents(name: str, config: Any, kind: str, chat: bool) -> list[Line]:
    """Return documents in the dataset's order; raise RefusedTask for images or several turns."""
    import datasets
    from lighteval.tasks import lighteval_task
    from lighteval.tasks.prompt_manager import PromptManager

    lighteval_task.load_dataset = datasets.load_dataset  # its import bound the hub's function
    task = lighteval_task.LightevalTask(config)
    make, prompts = task.formatter, PromptManager(use_chat_template=chat)

    def seeded(row: Any, task_name: str) -> Any:
        seed(f"{name}/{row['__index']}")  # some tasks shuffle the choices of a question
        return make(row, task_name)

    task.formatter = seeded
    lines = []
    for doc in sorted(task.get_docs(), key=lambda doc: int(doc.id)):
        turns = not isinstance(doc.query, str) or "multi_turn_queries" in (doc.specific or {})
        if turns or doc.images:
            raise not_supported(name, "it has several turns or images")
        place = f"{name}/{doc.id}"
        more = _choices(place, doc, prompts) if kind == "choices" else _prompt(name, doc, prompts)
        lines.append({"id": place, "part": name, **more})
    return lines


def _choices(place: str, doc: Any, prompts: Any) -> Line:
    right = doc.gold_index if isinstance(doc.gold_index, list) else [doc.gold_index]
    if len(right) != 1 or len(doc.choices) < 2:
        raise RefusedTask(f"{place} has {len(right)} right of {len(doc.choices)} choices")
    context, alone = prompts.prepare_prompt(doc), doc.unconditioned_query
    return {
        "choices": [[context, choice] for choice in doc.choices],
        "unconditional": alone and [[alone, choice] for choice in doc.choices],
        "right": right[0],
        "fields": plain_fields({"query": doc.query, **(doc.specific or {})}),
    }


def _prompt(name: str, doc: Any, prompts: Any) -> Line:
    golds, chat = doc.get_golds() if doc.choices else [], prompts.use_chat_template
    return {
        "prompt": None if chat else prompts.prepare_prompt(doc),
        "messages": prompts.prepare_prompt_api(doc) if chat else None,
        "document": {"part": name, "doc": {field: getattr(doc, field) for field in _FIELDS}},
        "gold": str(golds[0]) if golds and golds[0] else None,
    }


def _info(configs: Mapping[str, Any], kind: str, metrics: Mapping[str, Any]) -> Line:
    stops = {name: [stop for stop in c.stop_sequence if stop] for name, c in configs.items()}
    sizes = [c.generation_size or 0 for c in configs.values() if kind == "generative"]
    return {
        "stop": common_stop(stops) if kind == "generative" else [],
        "max_new_tokens": most if (most := max(sizes, default=0)) > 0 else None,
        "num_fewshot": {name: config.num_fewshots for name, config in configs.items()},
        "metrics": dict(pair for metric in metrics.values() for pair in _directions(metric)),
    }


def _directions(metric: Any) -> Iterator[tuple[str, bool]]:
    """Yield each name of a metric, and whether more is better."""
    names, better = metric.metric_name, metric.higher_is_better
    for name in [names] if isinstance(names, str) else names:
        up = better.get(name, True) if isinstance(better, dict) else better
        yield _plain_name(name), bool(up)


if __name__ == "__main__":
    main("lighteval", render, scorer)

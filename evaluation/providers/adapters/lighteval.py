"""Tasks of lighteval: its prompts and its metrics, without its registry, pipeline and models."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import (
    Line,
    RefusedTask,
    Score,
    main,
    not_supported,
    seed,
)
from evaluation.providers.adapters.data import check_tasks, read_mirrors
from evaluation.providers.adapters.lighteval_tasks import TITLE, find_configs
from evaluation.providers.adapters.mirror_files import find_mirror
from evaluation.providers.adapters.rendering import (
    check_section,
    common_stop,
    plain_fields,
    write_documents,
)
from evaluation.providers.adapters.task_files import read_user_files

_OTHER_MODELS = ("BertScore", "BLEURT", "Faithfulness")
"""Metrics that are models."""

_FIELDS = ("query", "choices", "gold_index", "instruction", "specific", "task_name", "id")
"""Fields of a document that metrics read."""


def _check(request: Line) -> None:
    """Refuse tasks that lighteval lacks, and data that is not available."""
    check_tasks(request, _absent)


def _absent(request: Line) -> list[str]:
    read = [str(config.hf_repo) for config in find_configs(request).values()]
    return [dataset for dataset in read if find_mirror(dataset, request["mirrors"]) is None]


def _render(request: Line, folder: Path) -> Line:
    """Render a task of lighteval."""
    files = read_user_files(request)
    sources = read_mirrors(request["mirrors"])
    configs = find_configs(request)
    documents: list[Line] = []
    total = 0
    for name, config in configs.items():
        config.num_fewshots = request["num_fewshot"] or 0
        _check_measured(name, config)
        check_section(name, request["kind"], ranks=_ranks(config))
        choices = request["kind"] == "choices"
        if not choices:
            _metrics(name, config)
        docs = _docs(name, config)
        rendered = list(
            _choices(name, docs) if choices else _documents(name, docs, request["chat"])
        )
        total += len(rendered)
        documents += rendered[: request["limit"]]
    write_documents(folder, documents)
    sources["read"] += files.pop("read")
    facts = {"kind": request["kind"], "documents": total, **sources, **files}
    return {**_meta(configs, request["kind"]), **facts}


def _scorer(request: Line, cases: list[Line]) -> Score:
    """Return the function that scores completions by the task's metrics."""
    read_user_files(request)
    configs = find_configs(request)
    metrics = {name: _metrics(name, config) for name, config in configs.items()}
    return lambda document, completion: _scores(metrics[document["part"]], document, completion)


def _scores(metrics: Mapping[str, Any], document: Line, completion: str) -> Line:
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc
    from lighteval.utils.utils import remove_reasoning_tags

    answer_text = remove_reasoning_tags(completion, [("<think>", "</think>")])
    scores: Line = {}
    for metric in metrics.values():
        doc = Doc(**json.loads(json.dumps(document["doc"])))  # metrics write into it
        seed(json.dumps(document["doc"], sort_keys=True))
        answer = ModelResponse(text=[completion], text_post_processed=[answer_text])
        for name, value in metric.compute_sample(doc=doc, model_response=answer).items():
            scores[_plain_name(name)] = value
    return scores


def _plain_name(metric: str) -> str:
    """Return a metric's name without parameters: with one sample, pass@k is the same for every k."""
    return metric.partition(":")[0]


def _metrics(name: str, config: Any) -> dict[str, Any]:
    """Return the metrics of a single sample by name; raise RefusedTask if there are none."""
    from lighteval.metrics.metrics_sample import (
        AvgAtN,
        GPassAtK,
        JudgeLLM,
        MajAtN,
        PassAtK,
        SampleLevelComputation,
    )
    from lighteval.tasks.requests import SamplingMethod

    metrics: dict[str, Any] = {}
    why = "it measures likelihoods of more than one kind"
    for metric in config.metrics:
        judge = metric.sample_level_fn
        if isinstance(judge, JudgeLLM):
            raise not_supported(name, TITLE, "its metric asks another model")
        if metric.category != SamplingMethod.GENERATIVE:
            continue
        if isinstance(judge, MajAtN | GPassAtK):
            why = "its metric judges several samples of a prompt together"
        elif type(judge).__name__ in _OTHER_MODELS:
            why = "its metric is another model"
        elif metric.batched_compute or not isinstance(judge, SampleLevelComputation):
            why = "its metric judges all prompts together"
        else:
            if isinstance(judge, PassAtK | AvgAtN):
                judge.n = 1
            if isinstance(judge, PassAtK):
                judge.k = 1
            metrics[str(metric.metric_name)] = metric
    if not metrics:
        raise not_supported(name, TITLE, why)
    return metrics


def _check_measured(name: str, config: Any) -> None:
    """Refuse a task that neither ranks choices nor generates anything."""
    from lighteval.metrics.sample_preparator import TargetPerplexityPreparator
    from lighteval.tasks.requests import SamplingMethod

    why = None
    if {metric.category for metric in config.metrics} == {SamplingMethod.PERPLEXITY}:
        why = "it measures the perplexity of a given text; make its text a slice"
    elif all(isinstance(m.sample_level_fn, TargetPerplexityPreparator) for m in config.metrics):
        why = "it scores one given continuation, so that it ranks and generates nothing"
    if why is not None:
        raise not_supported(name, TITLE, why)


def _ranks(config: Any) -> bool:
    """Return whether a task measures only the likelihoods of choices."""
    from lighteval.tasks.requests import SamplingMethod

    return {metric.category for metric in config.metrics} == {SamplingMethod.LOGPROBS}


def _docs(name: str, config: Any) -> list[Any]:
    """Return documents in the dataset's order; raise RefusedTask for images or several turns."""
    import datasets
    from lighteval.tasks import lighteval_task

    lighteval_task.load_dataset = datasets.load_dataset  # its import bound the hub's function
    task = lighteval_task.LightevalTask(config)
    make = task.formatter

    def seeded(row: Any, task_name: str) -> Any:
        seed(f"{name}/{row['__index']}")  # some tasks shuffle the choices of a question
        return make(row, task_name)

    task.formatter = seeded
    docs = sorted(task.get_docs(), key=lambda doc: int(doc.id))
    for doc in docs:
        if not isinstance(doc.query, str) or "multi_turn_queries" in (doc.specific or {}):
            raise not_supported(name, TITLE, "it has several turns")
        if doc.images:
            raise not_supported(name, TITLE, "it asks about images")
    return docs


def _choices(name: str, docs: list[Any]) -> Iterator[Line]:
    from lighteval.tasks.prompt_manager import PromptManager

    prompts = PromptManager()
    for doc in docs:
        right = doc.gold_index if isinstance(doc.gold_index, list) else [doc.gold_index]
        if len(right) != 1:
            raise RefusedTask(f"{name}/{doc.id} has {len(right)} right choices")
        if len(doc.choices) < 2:
            raise RefusedTask(f"{name}/{doc.id} has only one choice, so there is nothing to rank")
        context, alone = prompts.prepare_prompt(doc), doc.unconditioned_query
        yield {
            "id": f"{name}/{doc.id}",
            "part": name,
            "choices": [[context, choice] for choice in doc.choices],
            "unconditional": alone and [[alone, choice] for choice in doc.choices],
            "right": right[0],
            "fields": plain_fields({"query": doc.query, **(doc.specific or {})}),
        }


def _documents(name: str, docs: list[Any], chat: bool) -> Iterator[Line]:
    from lighteval.tasks.prompt_manager import PromptManager

    prompts = PromptManager(use_chat_template=chat)
    for doc in docs:
        golds = doc.get_golds() if doc.choices else []
        yield {
            "id": f"{name}/{doc.id}",
            "part": name,
            "prompt": None if chat else prompts.prepare_prompt(doc),
            "messages": prompts.prepare_prompt_api(doc) if chat else None,
            "document": {"part": name, "doc": {field: getattr(doc, field) for field in _FIELDS}},
            "gold": str(golds[0]) if golds and golds[0] else None,
        }


def _meta(configs: Mapping[str, Any], kind: str) -> Line:
    shots = {name: config.num_fewshots for name, config in configs.items()}
    if kind == "choices":
        return {"stop": [], "max_new_tokens": None, "num_fewshot": shots, "metrics": {}}
    stops = {name: [stop for stop in c.stop_sequence if stop] for name, c in configs.items()}
    limits = [c.generation_size for c in configs.values() if (c.generation_size or -1) > 0]
    return {
        "stop": common_stop(stops),
        "max_new_tokens": max(limits) if limits else None,
        "num_fewshot": shots,
        "metrics": _directions(configs),
    }


def _directions(configs: Mapping[str, Any]) -> dict[str, bool]:
    """Return for each metric whether more is better."""
    directions: dict[str, bool] = {}
    for name, config in configs.items():
        for metric in _metrics(name, config).values():
            names, better = metric.metric_name, metric.higher_is_better
            for one in [names] if isinstance(names, str) else names:
                up = better.get(one, True) if isinstance(better, dict) else better
                directions[_plain_name(one)] = bool(up)
    return directions


if __name__ == "__main__":
    main(
        "lighteval",
        _render,
        _scorer,
        _check,
        ("datasets", "lighteval.tasks.lighteval_task", "lighteval.metrics.metrics_sample"),
    )

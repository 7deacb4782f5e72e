"""Tasks of lighteval: its registry, prompts and metrics, without its pipeline and models."""

import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from evaluation.providers.adapters import contract
from evaluation.providers.adapters.contract import Line, RefusedTask

_PROGRAMS, _SAMPLES = "runs the programs that a model writes", "judges several samples of a prompt"

_LEFT_OUT = {
    "CodegenMetric": _PROGRAMS, "VerifiableRewardMetric": _PROGRAMS, "MajAtN": _SAMPLES, "GPassAtK": _SAMPLES,
    **dict.fromkeys(("JudgeLLM", "BertScore", "BLEURT", "Faithfulness"), "asks another model"),
}  # fmt: skip
"""Classes of metrics that are not supported, and why. A task that has no other is refused."""

_FIELDS = ("query", "choices", "gold_index", "instruction", "specific", "task_name", "id")
"""Fields of a document that metrics read."""


def parts(request: Line) -> Iterator[contract.TaskPart]:
    """Yield a task, or the tasks of a group, rendered."""
    from lighteval.tasks.requests import SamplingMethod

    for name, config in _configs(request).items():
        ranks = {metric.category for metric in config.metrics} == {SamplingMethod.LOGPROBS}
        contract.check_section(name, request["kind"], ranks=ranks)
        metrics = [] if ranks else _metrics(name, config)
        documents = _documents(name, config)
        lines = [
            {"id": f"{name}/{number}", "part": name, **_line(name, doc, request)}
            for number, doc in enumerate(documents[: request["limit"]])
        ]
        yield contract.TaskPart(
            name=name,
            stop=[stop for stop in config.stop_sequence if stop],
            max_new_tokens=config.generation_size,
            num_fewshot=config.num_fewshots,
            metrics=dict(pair for metric in metrics for pair in _directions(metric)),
            documents=lines,
            count=len(documents),
        )


def _configs(request: Line) -> dict[str, Any]:
    """Return the requested task, or the tasks of a group, by name, seeded as lighteval's pipeline is."""
    import nltk
    from lighteval.metrics.metrics_sample import JudgeLLM

    # What modules of tasks do when they are imported: download, look up judges, unpickle what they fetched.
    nltk.download = lambda *_, **__: True
    JudgeLLM.__init__ = lambda *_, **__: None
    sys.modules["lighteval.tasks.tasks.tiny_benchmarks"] = ModuleType("tiny_benchmarks")
    from lighteval.tasks.registry import Registry
    from lighteval.tasks.tasks.ifbench import instructions

    instructions.RESOURCES_DOWNLOADED = True  # otherwise it would install a spaCy model
    contract.seed(1234)
    name, shots = request["task"], request.get("num_fewshot") or 0
    try:  # one sample of a prompt, by lighteval's own syntax
        found = Registry(tasks=f"{name}@k=1@n=1|{shots}").task_to_configs
    except ValueError as error:
        raise RefusedTask(f"lighteval has no such task: {error}") from None
    return {part: configs[0] for part, configs in found.items()}


def scorer(request: Line) -> contract.Score:
    """Return the function that scores completions by the task's metrics."""
    metrics = {name: _metrics(name, config) for name, config in _configs(request).items()}
    return lambda document, text: _scores(metrics[document["part"]], document["doc"], text)


def _scores(metrics: list[Any], fields: Line, completion: str) -> Line:
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc
    from lighteval.utils.utils import remove_reasoning_tags

    answer_text = remove_reasoning_tags(completion, [("<think>", "</think>")])
    scores: Line = {}
    for metric in metrics:
        doc = Doc(**json.loads(json.dumps(fields)))  # metrics write into it
        answer = ModelResponse(text=[completion], text_post_processed=[answer_text])
        scores |= metric.compute_sample(doc=doc, model_response=answer)
    return {name.partition(":")[0]: value for name, value in scores.items()}


def _metrics(name: str, config: Any) -> list[Any]:
    """Return the metrics of a single sample; raise RefusedTask if there are none."""
    from lighteval.metrics.metrics_sample import SampleLevelComputation
    from lighteval.tasks.requests import SamplingMethod

    metrics, why = [], "measures likelihoods, not of choices alone"
    for metric in config.metrics:
        if metric.category != SamplingMethod.GENERATIVE:
            continue
        classes = [kind.__name__ for kind in type(metric.sample_level_fn).__mro__]
        if left_out := [_LEFT_OUT[kind] for kind in classes if kind in _LEFT_OUT]:
            why = left_out[0]
        elif metric.batched_compute or SampleLevelComputation.__name__ not in classes:
            why = "judges all prompts together"
        else:
            metrics.append(metric)
    if not metrics:
        raise RefusedTask(f"{name} is not supported, as its metric {why}")
    return metrics


def _directions(metric: Any) -> Iterator[tuple[str, bool]]:
    """Yield each name of a metric without its parameters, such as pass@k's k, and whether more is better."""
    names, better = metric.metric_name, metric.higher_is_better
    for name in [names] if isinstance(names, str) else names:
        up = better.get(name, True) if isinstance(better, dict) else better
        yield name.partition(":")[0], bool(up)


def _documents(name: str, config: Any) -> list[Any]:
    """Return documents in the dataset's order; raise RefusedTask for images or several turns."""
    from lighteval.tasks.lighteval_task import LightevalTask
    from lighteval.utils.utils import as_list

    task = LightevalTask(config)
    places = {id(doc): place for place, doc in enumerate(task.eval_docs())}  # it shuffles them
    documents = sorted(task.get_docs(), key=lambda doc: places[id(doc)])
    for doc in documents:
        turns = not isinstance(doc.query, str) or "multi_turn_queries" in (doc.specific or {})
        if turns or doc.images:
            raise RefusedTask(f"{name} is not supported, as it has several turns or images")
        if any((gold or 0) < 0 for gold in as_list(doc.gold_index)):
            raise RefusedTask(f"{name} has hidden answers: a label is {doc.gold_index}")
    return documents


def _line(name: str, doc: Any, request: Line) -> Line:
    from lighteval.tasks.prompt_manager import PromptManager

    chat = request["chat"]
    prompts = PromptManager(use_chat_template=chat)
    if request["kind"] == "choices":
        return _choices(name, doc, prompts.prepare_prompt(doc))
    golds = doc.get_golds() if doc.choices else []
    return {
        "prompt": None if chat else prompts.prepare_prompt(doc),
        "messages": prompts.prepare_prompt_api(doc) if chat else None,
        "document": {"part": name, "doc": {field: getattr(doc, field) for field in _FIELDS}},
        "gold": str(golds[0]) if golds and golds[0] else None,
    }


def _choices(name: str, doc: Any, context: str) -> Line:
    from lighteval.utils.utils import as_list

    right, alone = as_list(doc.gold_index), doc.unconditioned_query
    if len(right) != 1 or len(doc.choices) < 2:
        raise RefusedTask(f"{name} has {len(right)} right of {len(doc.choices)} choices")
    return {
        "choices": [[context, choice] for choice in doc.choices],
        "unconditional": alone and [[alone, choice] for choice in doc.choices],
        "right": right[0],
        "fields": contract.plain_fields({"query": doc.query, **(doc.specific or {})}),
    }


if __name__ == "__main__":
    contract.main("lighteval", parts, scorer)

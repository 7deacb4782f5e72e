"""Tasks of olmo-eval, OlmoBaseEval's among them: its prompts and its scorers, without its models."""

import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import Line, RefusedTask, main, one_line
from evaluation.providers.adapters.data import check_tasks
from evaluation.providers.adapters.olmo_eval_data import (
    RULER,
    NoRows,
    Rows,
    keep_groups,
    mirror_name,
    sources_read,
)
from evaluation.providers.adapters.olmo_eval_scores import headline_of, scorer, single_metrics
from evaluation.providers.adapters.olmo_eval_tasks import (
    GOLD_ONLY,
    TITLE,
    check_environment,
    find_tasks,
    in_common,
    normalization_of,
    remark_on,
)
from evaluation.providers.adapters.rendering import check_section, plain_fields, write_documents

ROOT = Path(__file__).parents[3]

_FIELDS = ("question", "gold_answer", "choices", "metadata")
"""What an instance has of its row."""


def _check(request: Line) -> None:
    """Refuse tasks that olmo-eval lacks, and data that is not available."""
    check_environment()
    module = "evaluation.providers.adapters.olmo_eval_mirror"
    copy = f"`PYTHONPATH={ROOT} {sys.executable} -m {module} mirrors TASK_OR_SUITE…`"
    check_tasks(request, _absent, f"copy them on a machine that has it ({copy}), and name the copy")


def _absent(request: Line) -> list[str]:
    tasks = find_tasks(request["task"], request.get("python"))
    read = [_dataset_of(task) for task in tasks.values()]
    return [
        dataset
        for dataset in read
        if dataset is not None and mirror_name(dataset, request["mirrors"]) is None
    ]


def _dataset_of(task: Any) -> str | None:
    """Return the dataset that a task reads from the hub."""
    source = task.config.data_source
    if source is None:
        return RULER if task.config.name.startswith("ruler_") else None
    if source.source_type.value != "hf":
        return None
    files = source.data_files
    if source.path == "json" and isinstance(files, str):
        return "/".join(files.removeprefix("hf://datasets/").split("/")[:2])
    return str(source.path)


def render(request: Line, folder: Path) -> Line:
    """Render a task or a suite of olmo-eval; return the content of meta.json.

    Raises:
        RefusedTask: A task is not supported, or its rows are missing.
    """
    check_environment()
    tasks = find_tasks(request["task"], request.get("python"))
    rows = Rows(request["mirrors"])
    prepared: dict[str, list[Any]] = {}
    missing: list[NoRows] = []
    for spec, task in tasks.items():
        try:
            prepared[spec] = prepare(spec, task)
        except NoRows as error:
            missing.append(error)
        else:
            _check_whole(spec, rows.take_short())
    if missing:
        several = f"{len(missing)} of its {len(tasks)} tasks have no rows: " * (len(tasks) > 1)
        raise RefusedTask(several + "; ".join(dict.fromkeys(map(str, missing))))
    ranks = {s: found[0][1].request_type.value == "loglikelihood" for s, found in prepared.items()}
    in_common(request, "are ranked and generated", ranks)
    lines = [line for s, task in tasks.items() for line in _lines(s, task, prepared[s], request)]
    write_documents(folder, lines)
    return {
        **_meta(request, tasks, prepared),
        "kind": request["kind"],
        "num_fewshot": {spec: task.config.num_fewshot for spec, task in tasks.items()},
        "documents": sum(map(len, prepared.values())),
        **sources_read(rows, request.get("python")),
    }


def prepare(spec: str, task: Any) -> list[tuple[Any, Any]]:
    """Draw a task's instances, each with its request, as olmo-eval's runner draws them.

    Raises:
        RefusedTask: Its code fails, or returns nothing.
    """
    keep_groups(task)
    try:
        instances = list(task.instances)
        limit = task.config.limit
        if limit and len(instances) > limit:
            instances = random.Random(task.config.seed).sample(instances, limit)
        prepared = [(instance, task.format_request(instance)) for instance in instances]
    except Exception as error:  # noqa: BLE001 - its tasks raise what they like
        raise _crash(spec, "task", error) from None
    if not prepared:
        raise RefusedTask(f"{spec} gives no prompt from these rows")
    return prepared


def _crash(spec: str, what: str, error: Exception) -> RefusedTask:
    why = f"{type(error).__name__}: {one_line(error)}"
    return RefusedTask(
        f"the {what} of {spec} fails in {TITLE}'s own code ({why}); choose another variant"
    )


def _check_whole(spec: str, lacking: list[str]) -> None:
    """Raise RefusedTask for a mirror without all rows that examples are drawn from."""
    if lacking:
        raise RefusedTask(
            f"{spec} draws its examples from all rows of a split, and these would give other prompts "
            f"({'; '.join(lacking)}); complete the mirror"
        )


def _lines(spec: str, task: Any, prepared: list[tuple[Any, Any]], request: Line) -> Iterator[Line]:
    kinds = {asked.request_type.value for _, asked in prepared}
    if len(kinds) > 1:
        raise RefusedTask(f"{spec} has requests of several kinds ({', '.join(sorted(kinds))})")
    kind = kinds.pop()
    check_section(spec, request["kind"], ranks=kind == "loglikelihood")
    make = _gold if request.get("gold_alone") else _question
    if kind != "loglikelihood":
        _check_turns(spec, kind, request["chat"])
        make = _document
    for number, (instance, asked) in enumerate(prepared[: request["limit"]]):
        line = {"id": f"{spec}/{number}", "part": spec, **make(spec, task, instance, asked)}
        if kind == "loglikelihood":
            line["fields"] = plain_fields({name: getattr(instance, name) for name in _FIELDS})
        yield line


def _check_turns(spec: str, kind: str, chat: bool) -> None:
    if (kind == "chat") != chat:
        what = "chats" if kind == "chat" else "plain prompts"
        raise RefusedTask(f"the requests of {spec} are {what}; set `chat: {str(not chat).lower()}`")


def _question(spec: str, task: Any, instance: Any, asked: Any) -> Line:
    texts = list(asked.continuations)
    contexts = asked.continuation_prompts or [asked.prompt] * len(texts)
    pairs = [list(pair) for pair in zip(contexts, texts, strict=True)]
    normalization = normalization_of(spec, task)
    _try_metrics(spec, task, instance, asked)
    if normalization in GOLD_ONLY.values():
        return _gold(spec, task, instance, asked)
    count = instance.metadata["num_choices"] if normalization == "pmi" else len(pairs)
    return {
        "choices": pairs[:count],
        "unconditional": pairs[count:] or None,
        "right": instance.metadata["gold_idx"],
    }


def _gold(spec: str, task: Any, instance: Any, asked: Any) -> Line:
    """Return only the right answer; some tasks send no other choices."""
    normalization_of(spec, task)
    right = instance.metadata.get("gold_idx") or 0
    right = right if 0 <= right < len(asked.continuations) else 0
    context = asked.continuation_prompts[right] if asked.continuation_prompts else asked.prompt
    return {"choices": [[context, asked.continuations[right]]], "unconditional": None, "right": 0}


def _try_metrics(spec: str, task: Any, instance: Any, asked: Any) -> None:
    """Raise RefusedTask if a metric cannot be computed from log-probabilities of these continuations."""
    from olmo_eval.common.types import LMOutput, Response

    entries: Any = [{"token": "", "logprob": -1.0, "bytes": []}]
    outputs = [LMOutput(text=text, logprobs=entries) for text in asked.continuations]
    for metric in task.config.metrics:
        try:
            metric.compute([Response(instance, asked, outputs)])
        except Exception as error:  # noqa: BLE001 - its metrics raise what they like
            raise _crash(spec, f"metric {type(metric).__name__}", error) from None


def _document(spec: str, task: Any, instance: Any, asked: Any) -> Line:
    if asked.tools:
        raise RefusedTask(f"{spec} of {TITLE} is not supported, as its answers call tools")
    chat = asked.request_type.value == "chat"
    turns = list(asked.messages)
    if chat and asked.system_prompt:
        turns.insert(0, {"role": "system", "content": asked.system_prompt})
    gold = instance.metadata.get("gold_text", instance.gold_answer)
    gold = ", ".join(map(str, gold)) if isinstance(gold, list | tuple) else gold
    drawn = task.get_sampling_params(instance)
    stops = list(drawn.stop_sequences or ()) if drawn else []
    return {
        "prompt": None if chat else asked.prompt,
        "messages": turns if chat else None,
        "document": {"part": spec, "doc": {name: getattr(instance, name) for name in _FIELDS}},
        "gold": gold and _cut(gold, stops),
    }


def _meta(request: Line, tasks: dict[str, Any], prepared: dict[str, list[Any]]) -> Line:
    common = partial(in_common, request)
    if request["kind"] == "choices":
        normalizations = {spec: normalization_of(spec, task) for spec, task in tasks.items()}
        remarks = [
            remark_on(spec, tasks[spec], normalization)
            for spec, normalization in normalizations.items()
        ]
        return {
            "stop": [],
            "max_new_tokens": None,
            "metrics": {},
            "counts_space": True,
            "primary": None
            if request.get("gold_alone")
            else common("are ranked in different ways", normalizations),
            "remarks": [remark for remark in remarks if remark is not None],
        }
    drawn = {spec: _sampling(spec, task, prepared[spec]) for spec, task in tasks.items()}
    metrics = {spec: single_metrics(task) for spec, task in tasks.items()}
    stops = {spec: list(one.stop_sequences or ()) for spec, one in drawn.items()}
    limits = {spec: one.max_tokens or None for spec, one in drawn.items()}
    prompts = [asked.prompt or "" for found in prepared.values() for _, asked in found]
    return {
        "stop": common("stop at different strings", stops),
        "max_new_tokens": common("generate different numbers of tokens", limits),
        "metrics": {key: True for metric in metrics.values() for key in metric},
        "primary": common(
            "have different headlines", {s: headline_of(tasks[s], m) for s, m in metrics.items()}
        ),
        "special_tokens": _special_tokens(prompts),
        "sampling": common(
            "are sampled differently", {s: _settings(one) for s, one in drawn.items()}
        ),
    }


def _sampling(spec: str, task: Any, prepared: list[tuple[Any, Any]]) -> Any:
    """Return the sampling parameters that all instances of a task share."""
    from olmo_eval.common.types import SamplingParams

    params = [task.get_sampling_params(instance) or SamplingParams() for instance, _ in prepared]
    if any(param != params[0] for param in params):
        raise RefusedTask(f"{spec} decodes each prompt differently, which is not supported here")
    return params[0]


def _settings(params: Any) -> Line:
    """Return the keys of a suite's `sampling`; `do_sample` with temperature 0 is greedy."""
    if not params.temperature or not params.do_sample:
        return {}
    given = {"temperature": params.temperature, "top_p": params.top_p, "top_k": params.top_k}
    return {name: value for name, value in given.items() if value} | {"n": params.num_samples}


def _special_tokens(prompts: list[str]) -> list[str]:
    """Return the tokens with which prompts mark the place of code to fill in."""
    from olmo_eval.evals.constants.code import OLMO_FIM

    marks = (OLMO_FIM.lead_token, OLMO_FIM.center_token, OLMO_FIM.end_token)
    return [mark for mark in marks if any(mark in prompt for prompt in prompts)]


def _cut(text: str, stops: list[str]) -> str:
    """Cut a gold at the first stop string, as a completion would be cut."""
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]


if __name__ == "__main__":
    main("olmo_eval", render, scorer, _check, ("datasets", "olmo_eval.evals.tasks"))

"""The Hub's evaluation results: `.eval_results/*.yaml` of a model repository.

An entry names a data set that is registered there as a benchmark, and the task in its eval.yaml. Neither
follows from a suite, so the user names both for each task.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from evaluation.errors import ConfigError
from evaluation.files import write_text
from evaluation.reporting.sharing.shared_results import SharedCheckpoint, SharedItem
from evaluation.wording import no_such

FOLDER = ".eval_results"


@dataclass(frozen=True)
class HubTask:
    """A registered benchmark and the task in its eval.yaml."""

    dataset: str
    task: str

    @classmethod
    def parse(cls, text: str) -> tuple[str, "HubTask"]:
        """Return the item's name and its benchmark from `NAME=OWNER/DATASET:TASK`.

        Raises:
            ConfigError: It has another form.
        """
        name, equals, rest = text.partition("=")
        dataset, colon, task = rest.rpartition(":")
        if not (name and equals and colon and task and dataset.count("/") == 1):
            raise ConfigError(
                f"--hub-task {text}: write NAME=OWNER/DATASET:TASK, such as "
                "gpqa_diamond=Idavidrein/gpqa:gpqa_diamond"
            )
        return name, cls(dataset, task)


def write_hub_results(
    checkpoint: SharedCheckpoint, output: Path, tasks: Mapping[str, HubTask], now: int
) -> list[Path]:
    """Write a file for each of the named items; return the files.

    Args:
        tasks: The benchmark of each item that is written, by the item's name.
        now: Seconds since 1970, for the date of the results.

    Raises:
        ConfigError: The checkpoint has no such item.
    """
    items = {item.label: item for item in checkpoint.items}
    paths = []
    for name, task in tasks.items():
        if name not in items:
            raise ConfigError(f"--hub-task {name}: {no_such('item', name, items)}")
        path = output / checkpoint.name / FOLDER / f"{name}.yaml"
        content = yaml.safe_dump([_entry(items[name], task, now)], sort_keys=False)
        write_text(path, content)
        paths.append(path)
    return paths


def _entry(item: SharedItem, task: HubTask, now: int) -> dict[str, Any]:
    """Return an item's entry; rates are percentages there."""
    headline = item.tier.tier.headline_of(item.result.values)
    value = next(value for value in item.values if value.metric.name == headline)
    is_share = value.metric.unit == "fraction"
    notes = [value.metric.words]
    if item.num_fewshot is not None:
        notes.append(f"{item.num_fewshot}-shot")
    if item.engine is not None:
        notes.append(f"completions by {item.engine.title}")
    if value.low is not None and value.high is not None:
        low, high = (value.metric.level(bound) for bound in (value.low, value.high))
        notes.append(f"95 % interval {low} to {high}")
    return {
        "dataset": {"id": task.dataset, "task_id": task.task},
        "value": round(100 * value.value, 2) if is_share else round(value.value, 4),
        "date": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d"),
        "notes": ", ".join(notes),
    }

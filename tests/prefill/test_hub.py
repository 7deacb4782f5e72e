"""What the hub gives, or refuses, without reaching for it."""

from collections.abc import Callable, Iterator
from typing import Any

import datasets
import pytest
from datasets.exceptions import DatasetNotFoundError

from evaluation.errors import SourceError
from evaluation.prefill.hub import hub_rows
from evaluation.settings.sources import Source

ROWS = [{"text": "a", "other": 1}, {"text": "b", "other": 2}]

Load = Callable[..., Any]


def read(source: Source, fields: list[str] | None = None) -> list[dict[str, Any]]:
    return list(hub_rows(source, config=source.config, split=source.split, fields=fields))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Arguments that `load_dataset` was called with; it gives ROWS."""
    seen: list[dict[str, Any]] = []

    def load(path: str, name: str | None, **options: Any) -> Any:
        seen.append({"path": path, "name": name, **options})
        dataset = datasets.Dataset.from_list(ROWS)
        return dataset.to_iterable_dataset() if options["streaming"] else dataset

    monkeypatch.setattr(datasets, "load_dataset", load)
    return seen


def test_all_of_a_source_reaches_the_hub(calls: list[dict[str, Any]]) -> None:
    source = Source(
        dataset="a/b", config="c", split="s", revision="r", data_files=("x.jsonl",), streaming=True
    )
    assert read(source) == ROWS
    assert read(source, ["text"]) == [{"text": "a"}, {"text": "b"}]
    assert read(source, ["missing"]) == ROWS
    expected = {"path": "a/b", "name": "c", "split": "s", "revision": "r", "streaming": True}
    assert calls == [expected | {"data_files": {"s": ["x.jsonl"]}}] * 3


def test_a_stream_that_fails_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        raise NotImplementedError("no streaming of zip in zip")
        yield {}

    def load(path: str, name: str | None, **options: Any) -> Any:
        if options["streaming"]:
            return datasets.IterableDataset.from_generator(broken)
        return datasets.Dataset.from_list(ROWS)

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert read(Source(dataset="a/b", streaming=True)) == ROWS
    assert "a/b: streaming failed" in caplog.text
    assert "no streaming of zip in zip" in caplog.text


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DatasetNotFoundError("Dataset 'a/b' is a gated dataset on the Hub."), "it is gated"),
        (DatasetNotFoundError("Dataset 'a/b' doesn't exist"), "it is not on the hub"),
        (ConnectionError("Couldn't reach 'a/b' on the Hub"), r"mirrors: \{a/b: …\}"),
        (RuntimeError("Dataset scripts are no longer supported, but found b.py"), "refs/convert"),
        (ValueError("BuilderConfig 'c' not found. Available: ['d']"), r"Available: \['d'\]"),
        (ValueError("Unknown split \"x\". Should be one of ['train']."), "Should be one of"),
    ],
)
def test_one_sentence_for_each_refusal(
    error: Exception, message: str, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(SourceError, match=message) as caught:
        read(Source(dataset="a/b", streaming=streaming))
    assert "\n" not in str(caught.value)

"""Completions of any engine in a file: lines of four formats, each told by its keys.

    id, completion, sample                  as this workflow writes and reads them (`completions.jsonl`)
    doc_id, arguments, resps                lm-evaluation-harness's `samples_<task>_….jsonl`
    custom_id, response.body.choices        batch output of OpenAI's API, and of `vllm run-batch`
    id, outputs[].text                      vLLM's `RequestOutput`, written as JSON

A prompt is named by its id, in lm-evaluation-harness's files by its text, or else by its document's number.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.errors import ResultsError, ScoringError, SourceError
from evaluation.input_files import read_json, read_lines
from evaluation.prefill.files import check_unicode
from evaluation.scoring.answers import StopReason
from evaluation.settings.model import LARGEST_COUNT


@dataclass(frozen=True)
class CompletionLine:
    """What was written after a prompt; `stop_reason` is None where the file does not say it."""

    id: str
    sample: int
    completion: str
    stop_reason: StopReason | None = None


@dataclass(frozen=True)
class CompletionFile:
    """The completions of a file, as many of each prompt, and the engine that its format suggests."""

    lines: list[CompletionLine]
    engine: str


class _Text(NamedTuple):
    """A completion of a row; `sample` is `...` where the file does not number it."""

    text: Any
    sample: Any = ...
    stop_reason: StopReason | None = None


_REASONS: Mapping[Any, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "stop_string": "stop_string",
    "eos": "eos",
    "stop": "eos",
    "end_turn": "eos",
}


_ENDED_WITHOUT_TEXT = ("length", "tool_calls", "function_call", "stop")


def _reason(written: Any) -> StopReason | None:
    return _REASONS.get(written) if isinstance(written, str) else None


def _own(row: Mapping[str, Any]) -> list[_Text]:
    return [_Text(row.get("completion"), row.get("sample", ...), _reason(row.get("stop_reason")))]


def _harness(row: Mapping[str, Any]) -> list[_Text]:
    responses = row.get("resps")
    parts = responses if isinstance(responses, list) else []
    return [_Text(one) for part in parts for one in (part if isinstance(part, list) else [part])]


def _batch(row: Mapping[str, Any]) -> list[_Text]:
    choices = _tables(_at(row, "response", "body", "choices"))
    return [
        _Text(_content(choice), stop_reason=_reason(choice.get("finish_reason")))
        for choice in sorted(choices, key=lambda choice: str(choice.get("index", 0)).zfill(9))
    ]


def _content(choice: Mapping[str, Any]) -> Any:
    """Return a choice's text; it is empty where a model only called tools or did not end its thinking."""
    text = choice.get("text", _at(choice, "message", "content"))
    is_empty = text is None and isinstance(choice.get("message"), dict)
    return "" if is_empty and choice.get("finish_reason") in _ENDED_WITHOUT_TEXT else text


def _outputs(row: Mapping[str, Any]) -> list[_Text]:
    return [
        _Text(output.get("text"), stop_reason=_reason(output.get("finish_reason")))
        for output in _tables(row.get("outputs"))
    ]


def _tables(listed: Any) -> list[dict[str, Any]]:
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _at(row: Any, *keys: str) -> Any:
    for key in keys:
        row = row.get(key) if isinstance(row, dict) else None
    return row


class _Format(NamedTuple):
    engine: str
    key: str
    """A key that no other format has."""
    texts: Callable[[Mapping[str, Any]], list[_Text]]


_FORMATS = (
    _Format("lm_eval", "resps", _harness),
    _Format("openai_batch", "custom_id", _batch),
    _Format("vllm", "outputs", _outputs),
    _Format("another engine", "", _own),
)


def read_completions(path: Path, prompts: Mapping[str, str]) -> CompletionFile:
    """Read completions of a task's prompts.

    Args:
        path: JSONL in one of the formats, or `-` for standard input.
        prompts: The task's prompts as a model reads them, by id.

    Raises:
        ResultsError: A line is of no format, failed, or names no prompt of the task; or a sample occurs
            twice.
        ScoringError: A prompt has fewer completions than another.
    """
    ids = _Ids(prompts)
    completion_lines: dict[tuple[str, int], CompletionLine] = {}
    counts: Counter[str] = Counter()
    engine = ""
    for number, text in read_lines(path, ResultsError, "JSONL of `id` and `completion`"):
        if not text.strip():
            continue
        where = f"{path}: line {number}"
        row = read_json(text, where, ResultsError)
        if not isinstance(row, dict):
            raise ResultsError(f"{where} is no JSON object; write it again")
        form = next(
            candidate for candidate in _FORMATS if candidate.key in row or not candidate.key
        )
        engine = engine or form.engine
        for line in list(_lines(row, form, where, ids, counts)):
            if (line.id, line.sample) in completion_lines:
                raise ResultsError(f"{where}: sample {line.sample} of {line.id!r} appears twice")
            completion_lines[line.id, line.sample] = line
            counts[line.id] += 1
    if not completion_lines:
        raise ResultsError(f"{path}: it holds no completions")
    least, most = min(counts, key=counts.__getitem__), max(counts.values())
    if counts[least] < most:
        raise ScoringError(
            f"{least!r} has {counts[least]} completions, and another prompt {most}; give as many of each"
        )
    return CompletionFile(list(completion_lines.values()), engine)


class _Ids:
    """Finds the prompt of a row."""

    def __init__(self, prompts: Mapping[str, str]) -> None:
        self._prompts = prompts
        self._by_text = {text.strip(): id for id, text in prompts.items()}
        self._by_number = {id.rpartition("/")[2]: id for id in prompts}

    def of(self, row: Mapping[str, Any], form: _Format, where: str) -> str:
        """Return the id of a row's prompt; raise ResultsError for one that the task does not have."""
        if form.key == "resps":
            return self._of_document(row, where)
        id = row.get(form.key if form.key == "custom_id" else "id", row.get("request_id"))
        if not isinstance(id, str):
            raise ResultsError(f"{where}: a line needs the texts `id` and `completion`")
        if id not in self._prompts:
            raise ResultsError(
                f"{where}: {id!r} is not a prompt of the task, whose ids are like "
                f"{next(iter(self._prompts))!r}; name the task that was completed"
            )
        return id

    def _of_document(self, row: Mapping[str, Any], where: str) -> str:
        arguments = row.get("arguments")
        first = arguments[0] if isinstance(arguments, list) and arguments else arguments
        if isinstance(first, dict):
            first = first.get("arg_0", _at(first, "gen_args_0", "arg_0"))
        text = first[0] if isinstance(first, list) and first else first
        id = self._by_text.get(text.strip()) if isinstance(text, str) else None
        id = id or self._by_number.get(str(row.get("doc_id")))
        if id is None:
            raise ResultsError(
                f"{where}: neither its prompt nor `doc_id` {row.get('doc_id')!r} is one of the task's, whose "
                f"ids are like {next(iter(self._prompts))!r}; name the task that was completed"
            )
        return id


def _lines(
    row: Mapping[str, Any], form: _Format, where: str, ids: _Ids, counts: Mapping[str, int]
) -> Iterator[CompletionLine]:
    if row.get("error") or _at(row, "response", "status_code") not in (None, 200):
        failed = row.get("error") or _at(row, "response", "body")
        raise ResultsError(f"{where}: this request failed ({str(failed)[:200]}); send it again")
    id = ids.of(row, form, where)
    texts = form.texts(row)
    if not texts:
        raise ResultsError(f"{where}: it has no completion; generate it again")
    for number, text in enumerate(texts):
        if not isinstance(text.text, str):
            raise ResultsError(f"{where}: a line needs the texts `id` and `completion`")
        sample = counts[id] + number if text.sample is ... else text.sample
        if type(sample) is not int or not 0 <= sample < LARGEST_COUNT:
            raise ResultsError(f"{where}: `sample` is {sample!r}, not a number 0, 1, 2 …")
        try:
            check_unicode(text.text)
        except SourceError as error:
            raise ResultsError(f"{where}: `completion`: {error}") from None
        yield CompletionLine(id, sample, text.text, text.stop_reason)

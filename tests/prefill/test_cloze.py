"""Tier3 tasks: the suites give the harness's strings and ids, and bad items are refused by name."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.errors import SourceError
from evaluation.prefill.caches import TaskCache, TokenizedQuestion, read_task
from evaluation.prefill.items import even_quotas
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.plan import StagePlan
from evaluation.settings.suites import load_suite
from evaluation.tokenizers.loading import load_tokenizer
from tests.conftest import ROOT
from tests.prefill.plans import make_plan
from tests.tables import cases
from tests.workflow.world import write_rows

SUITE = load_suite(ROOT / "task_suites", "stage4_cf_core")


def task_fields(name: str, **changes: Any) -> dict[str, Any]:
    return SUITE.tasks[name].model_dump() | changes


def rows_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(folder / "reference/lm_eval_smollm2_135m_instruct.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            rows.setdefault(row["task"].removesuffix("_astronomy"), []).append(row)
    return rows


def shipped(tmp_path: Path, shared: Path, **tasks: dict[str, Any]) -> StagePlan:
    folder, mirrors = shared / "reference/tokenizer", {"*": str(shared / "data")}
    return make_plan(tmp_path, folder, tasks=tasks, mirrors=mirrors, sequence_length=2048)


def items_of(plan: StagePlan, name: str) -> list[TokenizedQuestion]:
    PREFILLS["tier3"].make(plan, name)
    return read_task(plan.cache_folder("tier3", name)).items


def as_reference(item: TokenizedQuestion) -> list[dict[str, Any]]:
    return [
        {
            "context": item.contexts[candidate.context].text,
            "continuation": candidate.text,
            "context_tokens": list(item.contexts[candidate.context].tokens),
            "continuation_tokens": list(candidate.tokens),
        }
        for candidate in item.candidates
    ]


def test_items_are_those_of_the_harness(shared: Path, tmp_path: Path) -> None:
    """Ten tasks, 100 items each (60 of copa): every string, every token id, every gold."""
    reference = rows_of(shared)
    assert len(reference) == 10
    tasks = {name: task_fields(name, limit=100) for name in reference}
    tasks["sciq"]["split"] = "validation"  # from which the reference was made
    tasks["mmlu"]["configs"] = ("astronomy",)
    plan = shipped(tmp_path, shared, **tasks)
    compared = 0
    for name, rows in reference.items():
        items = items_of(plan, name)
        assert len(items) == (60 if name == "copa" else 100)
        for item, row in zip(items, rows, strict=False):
            found = as_reference(item)
            expected = [{key: given[key] for key in found[0]} for given in row["candidates"]]
            assert found == expected, item.id
            if row["target"].isdigit():
                assert item.gold == int(row["target"]), item.id
            compared += len(expected)
    assert compared > 3000


@pytest.mark.parametrize("name", ["piqa", "winogrande", "commonsense_qa", "qasc", "copa"])
def test_hidden_labels_are_refused(name: str, shared: Path, tmp_path: Path) -> None:
    plan = shipped(tmp_path, shared, **{name: task_fields(name, split="test")})
    with pytest.raises(SourceError, match=rf"split test: {name}/0: no usable label .*hidden"):
        PREFILLS["tier3"].make(plan, name)
    assert not plan.cache_folder("tier3", name).exists()


ROWS = [
    {"question": f"Who is {number}?", "choices": ["a fox", "a lazy dog", "me"], "label": number % 3}
    for number in range(8)
]

FIELDS: dict[str, Any] = {
    "choices": "choices",
    "gold": "label",
    "context": "Question: {{ question }}\nAnswer:",
}


def prefill(
    tmp_path: Path, tokenizer: Path, rows: list[dict[str, Any]], length: int = 64, **fields: Any
) -> TaskCache:
    """The cache of a task of these rows; `use_fast` and `prepend_bos` are the tokenizer's."""
    write_rows(tmp_path / "m/train.jsonl", rows)
    options = {key: fields.pop(key) for key in ("prepend_bos", "use_fast") if key in fields}
    options |= {"mirrors": {"d": str(tmp_path / "m")}, "sequence_length": length}
    tasks = {"t": FIELDS | {"dataset": "d"} | fields}
    plan = make_plan(tmp_path / "cache", tokenizer, tasks=tasks, **options)
    PREFILLS["tier3"].make(plan, "t")
    return read_task(plan.cache_folder("tier3", "t"))


def test_what_an_item_holds(tmp_path: Path, fast_folder: Path) -> None:
    cache = prefill(
        tmp_path,
        fast_folder,
        [{"question": "Ünïque ", "choices": ["é", "  two"], "label": 1}, ROWS[0]],
        context="{{ question }}",
        cluster="{{ question[0] }}",
        stratum="{{ question | length }}",
        unconditional_context="{{ index }}:",
        prepend_bos=True,
    )
    tokenizer = load_tokenizer(fast_folder, use_fast=True)
    item = cache.items[0]
    assert (item.id, item.cluster, item.gold) == ("t/0", "Ü", 1)
    assert item.stratum == "7"
    assert [context.text for context in item.contexts] == ["Ünïque ", "0:", "1:"]
    assert [candidate.text for candidate in item.candidates] == [" é", "   two"]
    assert [(c.chars, c.bytes) for c in item.candidates] == [(1, 2), (5, 5)]
    # The context's last space is part of what is scored.
    assert tokenizer.decode(item.contexts[0].tokens) == "<s>Ünïque"
    assert tokenizer.decode(item.candidates[0].tokens) == "  é"
    assert item.unconditional is not None
    assert [c.context for c in item.unconditional] == [1, 2]
    assert tokenizer.decode(item.unconditional[0].tokens) == " é"
    assert cache.meta["chance"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert cache.meta["candidates"] == 5
    longest = max(
        len(i.contexts[c.context].tokens) + len(c.tokens) for i in cache.items for c in i.candidates
    )
    assert cache.meta["max_tokens"] == longest


@pytest.mark.parametrize(("row", "fields", "message"), cases("prefill/odd", "items"))
def test_bad_items_are_named(
    row: dict[str, Any], fields: dict[str, Any], message: str, tmp_path: Path, fast_folder: Path
) -> None:
    with pytest.raises(SourceError, match=message):
        prefill(tmp_path, fast_folder, [ROWS[0] | row], **fields)


def test_the_limit_is_spread_over_configurations(tmp_path: Path, fast_folder: Path) -> None:
    for config, count in (("a", 2), ("b", 8), ("c", 8)):
        write_rows(tmp_path / f"m/{config}/train.jsonl", ROWS[:count])
    cache = prefill(tmp_path, fast_folder, [], configs=("a", "b", "c"), limit=9)
    ids = [item.id for item in cache.items]
    assert ids == [
        f"t/{c}/{n}" for c, count in (("a", 2), ("b", 3), ("c", 4)) for n in range(count)
    ]
    assert cache.meta["items"] == {"asked": 18, "used": 9, "left_out": {"limit": 9}}


@given(st.integers(0, 60), st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_spread_is_even_and_exact(limit: int, sizes: list[int]) -> None:
    quotas = even_quotas(limit, sizes)
    assert sum(quotas) == min(limit, sum(sizes))
    assert all(0 <= quota <= size for quota, size in zip(quotas, sizes, strict=True))
    cut = [quota for quota, size in zip(quotas, sizes, strict=True) if quota < size]
    assert not cut or max(quotas) <= min(cut) + 1


def test_a_sorted_split_is_told(
    tmp_path: Path, fast_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [row | {"label": label} for label in range(3) for row in ROWS * 3]
    prefill(tmp_path, fast_folder, rows, limit=40)
    said = "none of the first 40 of 72 rows has label 2, so the split seems to be sorted"
    assert said in caplog.text
    caplog.clear()
    prefill(tmp_path, fast_folder, rows[::2] + rows[1::2], limit=40)
    prefill(tmp_path, fast_folder, rows, limit=12)
    assert "sorted" not in caplog.text
    prefill(tmp_path, fast_folder, rows, choices=None, gold=None, continuation=" x{{ label }}")
    assert "gold answers" not in caplog.text
    prefill(tmp_path, fast_folder, rows[:16], choices=None, gold=None, continuation=" x{{ label }}")
    assert "tasks.t: the gold answers of all 16 rows are ' x0'" in caplog.text

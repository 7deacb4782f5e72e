"""Two suites of one stage differ in each of their settings: each item is made with those of its own."""

from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import ConfigError
from evaluation.prefill.caches import PromptCache, read_prompts
from evaluation.prefill.generation import prefill_generation_task
from evaluation.prefill.prompts import prefill_probes, warn_of_lost, warn_of_unread
from evaluation.settings.config import validate_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.suites import Message, Suite
from tests.settings.test_wrong_settings import suite_files
from tests.workflow.world import write_rows

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% if enable_thinking is defined and not enable_thinking %}"
    "<think></think>{% endif %}{% endif %}"
)
OTHER = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
ITEM_SECTIONS = {"slices", "tasks", "probes", "generation_tasks"}


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Gold answers are verified by processes, which are reached by a socket."""


def suite(rows: Path, name: str, **settings: Any) -> dict[str, Any]:
    return {
        "chat_template": TEMPLATE,
        **settings,
        "slices": {f"slice_{name}": {"files": [str(rows)], "tokens": 64}},
        "probes": {
            f"probe_{name}": {
                "category": "c",
                "messages": [{"role": "user", "content": "Who?"}],
                "checks": [{"check": "no_chat_artifacts"}],
                "max_new_tokens": 9,
            }
        },
        "generation_tasks": {
            f"task_{name}": {
                "files": [str(rows)],
                "prompt": "{{ text }}",
                "chat": True,
                "max_new_tokens": 9,
                "document": {"gold": "text"},
                "verifiers": {"exact": {"kind": "pattern", "pattern": "(.+)"}},
            }
        },
    }


def planned(tmp_path: Path, tokenizer: Path, **suites: dict[str, Any]) -> StagePlan:
    folder = suite_files(tmp_path, **suites)
    raw: dict[str, Any] = {
        "results": str(tmp_path / "results"),
        "cache": str(tmp_path / "cache"),
        "suites": str(folder),
        "tokenizer": {"name": str(tokenizer)},
        "sequence_length": 64,
        "stages": {"s": {"checkpoints": "nowhere", "steps": [1], "suites": [*suites]}},
    }
    return plan_stages(validate_config(raw, "the test"))["s"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [{"text": "The quick brown fox"}])
    return path


def prompt_texts(plan: StagePlan) -> dict[str, str]:
    """The rendered prompt of each probe and task."""
    prefill_probes(plan)
    texts = {prompt.id: prompt.prompt for prompt in read_prompts(plan.probes_folder).prompts}
    for name in plan.suite.generation_tasks:
        prefill_generation_task(plan, name)
        texts[name] = read_task(plan, name).prompts[0].prompt
    return texts


def read_task(plan: StagePlan, name: str) -> PromptCache:
    return read_prompts(plan.cache_folder("tier5", name))


THOUGHT = {"chat_template_kwargs": {"enable_thinking": False}}

RENDERED: dict[str, tuple[dict[str, Any], str, str]] = {
    "chat_template": ({"chat_template": OTHER}, "[user]Who?", "[user]The quick brown fox"),
    "chat_template_kwargs": (
        THOUGHT,
        "<user>Who?</s><assistant><think></think>",
        "<user>The quick brown fox</s><assistant><think></think>",
    ),
    "system": (
        {"system": "Be brief."},
        "<system>Be brief.</s><user>Who?</s><assistant>",
        "<system>Be brief.</s><user>The quick brown fox</s><assistant>",
    ),
}


@pytest.mark.parametrize("key", RENDERED)
@pytest.mark.parametrize("order", [1, -1])
def test_prompts(key: str, order: int, rows: Path, tmp_path: Path, fast_folder: Path) -> None:
    given, probe, task = RENDERED[key]
    suites = {"plain": suite(rows, "plain"), "other": suite(rows, "other", **given)}
    plan = planned(tmp_path, fast_folder, **dict([*suites.items()][::order]))
    assert prompt_texts(plan) == {
        "probe_plain": "<user>Who?</s><assistant>",
        "task_plain": "<user>The quick brown fox</s><assistant>",
        "probe_other": probe,
        "task_other": task,
    }


def test_where_answers_end(rows: Path, tmp_path: Path, fast_folder: Path) -> None:
    suites = {"a": suite(rows, "a", stop=["\nQ:"]), "b": suite(rows, "b", chat_template=OTHER)}
    plan = planned(tmp_path, fast_folder, **suites)
    prefill_probes(plan)
    chats = read_prompts(plan.probes_folder).meta["chats"]
    assert [(chat["probes"], chat["stop"]) for chat in chats] == [
        (["probe_a"], ["\nQ:"]),
        (["probe_b"], []),
    ]


SET_ON_ITEMS = {
    "attention": ("slice", "document", "block"),
    "answer_after": ("probe", "</think>", None),
    "stop": ("probe", ("##",), ()),
}


@pytest.mark.parametrize("key", SET_ON_ITEMS)
@pytest.mark.parametrize("order", [1, -1])
def test_other_settings(key: str, order: int, rows: Path, tmp_path: Path) -> None:
    kind, value, default = SET_ON_ITEMS[key]
    suites = {"plain": suite(rows, "plain"), "other": suite(rows, "other", **{key: value})}
    plan = planned(tmp_path, tmp_path, **dict([*suites.items()][::order]))
    items = plan.suite.slices | plan.suite.probes
    assert getattr(items[f"{kind}_other"], key) == value
    assert getattr(items[f"{kind}_plain"], key) == default


def test_every_setting_of_a_suite_is_tested() -> None:
    others = ITEM_SECTIONS | {"groups", "extends", "overrides"}
    assert Suite.model_fields.keys() - others == RENDERED.keys() | SET_ON_ITEMS.keys()


def test_an_item_of_two_suites_that_differ_is_refused(rows: Path, tmp_path: Path) -> None:
    suites = {"a": suite(rows, "same"), "b": suite(rows, "same", attention="document")}
    said = r"b\.yaml: slices\.slice_same: .*differently; rename"
    with pytest.raises(ConfigError, match=said):
        planned(tmp_path, tmp_path, **suites)


def test_an_extended_suite_gets_the_settings_of_the_one_that_extends_it(
    rows: Path, tmp_path: Path, fast_folder: Path
) -> None:
    suite_files(tmp_path, ground=suite(rows, "a"))
    plan = planned(tmp_path, fast_folder, thin={"extends": "ground", **THOUGHT})
    assert prompt_texts(plan)["probe_a"].endswith("<think></think>")


def test_an_item_decides_before_its_suite(rows: Path, tmp_path: Path, fast_folder: Path) -> None:
    content = suite(rows, "a", system="Be brief.", **THOUGHT)
    task = content["generation_tasks"]["task_a"]
    task |= {"system": "Be long.", "chat_template_kwargs": {"enable_thinking": True}}
    plan = planned(tmp_path, fast_folder, a=content)
    assert prompt_texts(plan)["task_a"] == (
        "<system>Be long.</s><user>The quick brown fox</s><assistant>"
    )


@pytest.mark.parametrize(
    ("name", "is_read"), [("enable_thinking", True), ("enable_thinkin", False), ("thinking", False)]
)
def test_a_misspelt_variable_is_told(
    name: str, is_read: bool, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_unread("probes.a", "{% if enable_thinking %}<think>{% endif %}", {name: True})
    assert (f"reads no {name}" in caplog.text) != is_read


def test_names_text_of_messages_that_a_prompt_lacks(caplog: pytest.LogCaptureFixture) -> None:
    """As templates that drop the thinking of earlier turns; white space may differ."""
    asked = Message(role="user", content="2 + 2?")
    solved = Message(role="assistant", content="<think>4, I think.</think>\n\n4")
    warn_of_lost(
        "generation_tasks.sums",
        [([asked, solved], "user: 2 +\n2? you: <think>4, I think.</think> 4")],
    )
    assert not caplog.text
    warn_of_lost("generation_tasks.sums", [([asked, solved], "user: 2 + 2? you: 4")] * 2)
    assert len(caplog.records) == 1
    assert "generation_tasks.sums" in caplog.text
    assert "4, I think." in caplog.text

"""No setting is missing from the keys: changing one changes a key, or it is listed as one of the view."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from evaluation.checkpoints.subjects import step_subject
from evaluation.errors import SourceError
from evaluation.flow.caches import stage_entries
from evaluation.flow.keys import collect_key, score_key
from evaluation.prefill.tiers import PREFILLS, tokenizer_definition
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.provided import VERSIONS
from tests.tables import table

VIEWS = {
    "config": "results cache suites folders mirrors runs references providers "
    "training_config tokenizer sequence_length scoring.compile scoring.row_tokens scoring.cpu_row_tokens "
    "scoring.generation_batch scoring.checkpoints_per_job generation.python generation.memory_share "
    "generation.parts "
    "verification.workers stages",
    "stage": "results steps open_ended names suites bridge objective training_config tokenizer "
    "sequence_length command_hours checkpoints listed folders",
    "suite": "extends overrides attention system stop answer_after chat_template chat_template_kwargs",
}
"""Settings that change no key. They say where things are, how fast they are made, how results are shown; or
they are carried into the items, or resolved into the plan, of which these parts are in the keys."""

TOKENIZER = {
    "name": "t", "fingerprint": "f", "prepend_bos": False, "class": "c", "vocab_size": 9,
    "bos_token_id": 0, "eos_token_id": 0, "chat_template": "{{ messages }}",
}  # fmt: skip


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StagePlan]:
    folder = tmp_path_factory.mktemp("settings")
    for name, content in table("bad_input/right").items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return plan_stages(load_config(Path("config.yaml")))


def keys(plan: StagePlan) -> list[str]:
    """The keys of a checkpoint's scores and results, with caches that are as the settings want them."""
    asked, documents = dict[str, list[str]](), dict[str, list[str]]()
    for entry in stage_entries(plan):
        if entry.tier is None:
            asked["tokenizer"] = [tokenizer_definition(plan)]
            continue
        prefill = PREFILLS[entry.tier]
        try:
            wanted = prefill.define(plan, entry.name, TOKENIZER)
            part = prefill.define(plan, entry.name, TOKENIZER, asked=True)
        except SourceError as error:
            wanted = part = str(error)
        asked[entry.name], documents[entry.name] = [part], [wanted]
    subject = step_subject(plan, 10)
    score = score_key(plan, subject, (), "", asked)
    return [score, collect_key(subject, score, None, documents)]


Put = Callable[[Any], Any]


def leaves(
    value: Any, path: str = "", put: Put = lambda new: new
) -> Iterator[tuple[str, Any, Put]]:
    """Every field of settings by its path, with what returns the settings with another value there.

    It need not be a right one.
    """
    if isinstance(value, BaseModel):
        inner = {name: getattr(value, name) for name in type(value).model_fields}
    elif isinstance(value, dict):
        inner = value
    else:
        is_of_models = isinstance(value, tuple) and value and isinstance(value[0], BaseModel)
        inner = {str(number): one for number, one in enumerate(value)} if is_of_models else {}
    for name, one in inner.items():

        def put_there(new: Any, name: str = name) -> Any:
            if isinstance(value, BaseModel):
                return put(value.model_copy(update={name: new}))
            changed = {**inner, name: new}
            return put(changed if isinstance(value, dict) else tuple(changed.values()))

        yield from leaves(one, f"{path}.{name}".lstrip("."), put_there)
    if not inner:
        yield path, value, put


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case tuple():
            return (*value, "another")
        case dict():
            return {"another": "value"}
        case _:
            return f"{value or ''}another"


@pytest.mark.filterwarnings("ignore:Pydantic serializer")
@pytest.mark.parametrize("part", VIEWS)
def test_each_setting_changes_a_key_or_is_a_view(plans: dict[str, StagePlan], part: str) -> None:
    """Of some stage: what concerns generated answers is in no key of a stage without them."""
    has_effect: dict[str, bool] = {}
    for plan in plans.values():
        before = keys(plan)
        for name, value, put in leaves(getattr(plan, part)):
            now = replace(plan, **{part: put(other(value))})
            try:
                is_same = keys(now) == before
            except (AttributeError, LookupError, TypeError, ValueError):
                continue  # nothing could be made of such a value
            has_effect[name] = has_effect.get(name, False) or not is_same
    views = tuple(f"{view}." for view in VIEWS[part].split())
    without = {name for name, effect in has_effect.items() if not effect}
    assert sorted(name for name in without if not f"{name}.".startswith(views)) == []


def test_a_plan_s_own_parts_are_in_the_keys(plans: dict[str, StagePlan]) -> None:
    plan = plans["one"]
    others = [
        replace(plan, sequence_length=32),
        replace(plan, tokenizer=plan.tokenizer.model_copy(update={"prepend_bos": True})),
    ]
    for now in others:
        assert keys(now) != keys(plan)


def test_the_version_of_a_harness_is_in_the_keys(
    plans: dict[str, StagePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: keys(plan) for name, plan in plans.items()}  # each has tasks of lighteval
    monkeypatch.setitem(VERSIONS, "lighteval", "another")
    assert [name for name, plan in plans.items() if keys(plan) == before[name]] == []

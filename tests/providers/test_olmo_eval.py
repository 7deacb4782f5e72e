"""olmo-eval's tasks beside what its own code made of the same rows: prompts, golds, values, verdicts."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM

from evaluation.errors import ConfigError, SourceError
from evaluation.grading.by_hand import verify_by_hand
from evaluation.grading.choices import SCHEMA
from evaluation.metrics.accuracy import summarize_choices
from evaluation.metrics.measures import choice_measures, greedy
from evaluation.prefill.tiers import PREFILLS
from evaluation.prefill.tokenizers import encode_pairs, load_tokenizer
from evaluation.providers.adapters.olmo_eval_tasks import NORMALIZATIONS
from evaluation.providers.program import Provider
from evaluation.providers.render import render, render_choices
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_requests
from evaluation.scoring.engine.window import Request
from evaluation.settings.config import load_config
from evaluation.settings.olmo_suites import is_suite, suite_parts
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from evaluation.settings.provided import VERSIONS, ProviderChoices, Providers, ProviderTask
from evaluation.settings.suites import load_suite
from tests.conftest import ROOT
from tests.workflow.world import World, ask_for_answers

Line = dict[str, Any]

REFUSED = "multipl_e"
WITH_PACKAGES = ("bigcodebench", "ds1000")


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def reference(shared: Path) -> dict[str, list[Line]]:
    """The reference requests, by task."""
    files = (shared / "reference/olmobase").glob("*.jsonl")
    found = [read(path) for path in sorted(files) if path.stem not in ("scores", "verdicts")]
    return {lines[0]["task"]: lines for lines in found}


def asked(mirrors: dict[str, str], task: str, kind: str, **more: Any) -> Line:
    request = {"task": task, "kind": kind, "chat": False, "num_fewshot": None, "limit": 12}
    request |= {
        "include_path": None,
        "mirrors": mirrors,
        "expands": False,
        "python": None,
        "cases": [],
    }
    return {**request, **more}


def environment() -> Path:
    python = ROOT / Providers().olmo_eval
    if not os.access(python, os.X_OK):
        pytest.skip(f"no {python}: `make providers OLMO_EVAL=…` installs it")
    return python


def theirs(task: str, **more: Any) -> Line:
    return {"provider": "olmo_eval", "task": task, **more}


def answers(requests: list[Line], folder: Path) -> Iterator[Line]:
    done = subprocess.run(
        [environment(), "-m", "tests.providers.olmo_reference", folder],
        input="\n".join(map(json.dumps, requests)),
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return map(json.loads, done.stdout.splitlines())


def test_prompts_are_those_of_olmo_evals_own_code(
    reference: dict[str, list[Line]], mirrors: dict[str, str], tmp_path: Path
) -> None:
    requests = [
        asked(
            mirrors,
            task,
            "choices" if one["request_type"] == "loglikelihood" else "generative",
            python=sys.executable if task.startswith(WITH_PACKAGES) else None,
        )
        for task, (one, *_) in reference.items()
    ]
    counts = {"tasks": 0, "prompts": 0, "refused": 0}
    for request, answer in zip(requests, answers(requests, tmp_path), strict=True):
        task = request["task"]
        if task.startswith(REFUSED):
            assert " is not taken from olmo-eval, as its programs " in answer["refused"], task
            counts["refused"] += 1
            continue
        lines = reference[task]
        assert "lines" in answer, (task, answer)
        made = answer["lines"][: len(lines)]
        compare = same_question if request["kind"] == "choices" else same_prompt
        for mine, theirs in zip(made, lines, strict=True):
            compare(mine, theirs, answer["meta"])
            counts["prompts"] += 1
        counts["tasks"] += 1
    assert counts == {"tasks": 151, "prompts": 1195, "refused": 12}


@pytest.mark.parametrize(
    ("task", "kind", "decided_as"),
    [
        ("hellaswag:bpb:olmo3base", "gold", "gold"),
        ("arc_easy:olmo3base:bpb", "gold", "gold"),
        ("mmlu:bpb", "gold", "gold"),
        ("lambada", "gold", "gold"),
        ("arc_easy:bpb:olmo3base", "ranked", "gold"),
        ("arc_easy:rc:olmo3base", "ranked", "ranked"),
    ],
)
def test_the_name_tells_whether_the_right_answer_is_scored_alone(
    task: str, kind: str, decided_as: str
) -> None:
    found = ProviderChoices(provider="olmo_eval", task=task)
    assert (found.kind, found.decided_as) == (kind, decided_as)
    assert (found.meaning is None) == (kind == decided_as)
    assert ProviderChoices(provider="olmo_eval", task=task, kind="ranked").kind == "ranked"
    assert ProviderChoices(provider="lm_eval", task=task).kind == "ranked"


def test_objectives_use_what_names_promise(world: World) -> None:
    names = {"other": "sciq:bpb:olmo3base", "named": "arc_easy:bpb:olmo3base"}
    tasks = {
        name: {"provider": "olmo_eval", "task": task, "group": "bits"}
        for name, task in names.items()
    }

    def settled() -> str | None:
        content = {"extends": "base", "tasks": tasks}
        (world.folder / "suites/bits.yaml").write_text(yaml.safe_dump(content))
        config = yaml.safe_load(world.config.read_text())
        objective = {"tier": "tier3", "want": "improve", "group": "bits", "margin": 0.1}
        config["stages"]["stage2"] |= {"suites": ["bits"], "objective": [objective]}
        world.config.write_text(yaml.safe_dump(config))
        plan = plan_stages(load_config(world.config))["stage2"]
        return plan.stage.objective[0].metric

    assert settled() == "gold_bits_per_byte"
    tasks["other"]["task"] = "sciq:rc:olmo3base"
    with pytest.raises(ConfigError, match="set `metric: gold_bits_per_byte`, which all have"):
        settled()


def test_tasks_named_after_bits_per_byte_have_those_of_the_other_order_of_variants(
    reference: dict[str, list[Line]], mirrors: dict[str, str], tmp_path: Path
) -> None:
    names = ("arc_challenge", "arc_easy", "csqa", "piqa")
    kinds = {"ranked": False, "gold": True}
    requests = [
        asked(mirrors, f"{name}:bpb:olmo3base", "choices", gold_alone=alone)
        for name in names
        for alone in kinds.values()
    ]
    found = answers(requests, tmp_path)
    for name in names:
        ranked, gold = next(found), next(found)
        assert ranked["meta"]["primary"] in ("pmi", "per_char")
        assert f"{name}:bpb:olmo3base is named after bits per byte" in ranked["meta"]["remarks"][0]
        assert gold["meta"]["primary"] is None
        for mine, alone in zip(ranked["lines"], gold["lines"], strict=True):
            assert alone["choices"] == [mine["choices"][mine["right"]]]
        for mine, theirs in zip(gold["lines"], reference[f"{name}:olmo3base:bpb"], strict=False):
            same_question(mine, theirs, {"primary": "gold_bits_per_byte"})


def same_question(mine: Line, theirs: Line, meta: Line) -> None:
    texts = theirs["continuations"]
    contexts = theirs["continuation_prompts"] or [theirs["prompt"]] * len(texts)
    pairs = [list(pair) for pair in zip(contexts, texts, strict=True)]
    gold = theirs["gold_idx"]
    if meta["primary"] in ("gold_bits_per_byte", "greedy"):
        only = gold if len(pairs) > 1 else 0
        assert mine["choices"] == [pairs[only]], theirs["task"]
    else:
        assert mine["choices"] + (mine["unconditional"] or []) == pairs, theirs["task"]
        assert mine["right"] == gold, theirs["task"]


def same_prompt(mine: Line, theirs: Line, meta: Line) -> None:
    assert mine["prompt"] == theirs["prompt"]
    drawn = theirs["sampling"]
    assert meta["stop"] == (drawn["stop_sequences"] or [])
    assert meta["max_new_tokens"] == drawn["max_tokens"]
    if drawn["temperature"]:
        names = {"temperature": "temperature", "top_p": "top_p", "n": "num_samples"}
        assert meta["sampling"] == {name: drawn[theirs] for name, theirs in names.items()}
    else:
        assert meta["sampling"] == {}


def test_verdicts_are_those_of_olmo_evals_own_scorers(
    shared: Path, mirrors: dict[str, str], tmp_path: Path
) -> None:
    lines = read(shared / "reference/olmobase/verdicts.jsonl")
    by_task: dict[str, list[tuple[int, Line]]] = {}
    for line in lines:
        found = by_task.setdefault(line["task"], [])
        begins = bool(found) and line["kind"] == found[0][1]["kind"]
        found.append((found[-1][0] + begins if found else 0, line))
    requests = [
        asked(mirrors, task, "generative", cases=[(n, line["text"]) for n, line in found])
        for task, found in by_task.items()
    ]
    agree = 0
    for (task, found), answer in zip(by_task.items(), answers(requests, tmp_path), strict=True):
        for (_, line), scores in zip(found, answer["scores"], strict=True):
            given = {key.partition(":")[2]: value for key, value in scores.items()}
            assert given == line["scores"], (task, line["kind"])
            agree += 1
    assert agree == len(lines) == 671


def test_values_are_those_of_olmo_evals_own_metrics(
    shared: Path, reference: dict[str, list[Line]]
) -> None:
    """From the same log-probabilities: each question's accuracy, and its bits per byte."""
    numbers: dict[str, int] = {}
    counts = {"accuracy": 0, "bits_per_byte": 0, "greedy_accuracy": 0}
    for line in read(shared / "reference/olmobase/scores.jsonl"):
        if "values" not in line:
            continue
        task = line["task"]
        number = numbers[task] = numbers.get(task, -1) + 1
        question = reference[task][number]
        for metric, value in line["values"].items():
            name, _, key = metric.partition(":")
            if name in NORMALIZATIONS:
                found = summarize_choices(scored(question, line, name), NORMALIZATIONS[name])  # type: ignore[arg-type]
                assert found["ties"] == 0, (task, number)
                assert found["accuracy"] == value, (task, number)
                counts["accuracy"] += 1
            else:
                table = scored(question, line, name, alone=True)
                ours = choice_measures(table, "gold")["gold_bits_per_byte"]
                ours = greedy(table) if key == "greedy_accuracy" else ours
                assert ours[0] == pytest.approx(value, rel=1e-12), (task, number)
                counts[key] += 1
    assert counts == {"accuracy": 102, "bits_per_byte": 92, "greedy_accuracy": 6}


def test_log_probabilities_are_those_of_the_reference(
    shared: Path, reference: dict[str, list[Line]], smollm2: Path
) -> None:
    """Tokens of all, log-probabilities of every 12th instance; all of them with EVAL_ALL_REFERENCES."""
    tokenizer = load_tokenizer(smollm2, use_fast=True)
    numbers: dict[str, int] = {}
    asked: list[tuple[Request, float, bool]] = []
    lines = read(shared / "reference/olmobase/scores.jsonl")
    lines = [line for line in lines if "values" in line]
    for place, line in enumerate(lines):
        number = numbers[line["task"]] = numbers.get(line["task"], -1) + 1
        question = reference[line["task"]][number]
        texts = question["continuations"]
        contexts = question["continuation_prompts"] or [question["prompt"]] * len(texts)
        encoded = encode_pairs(tokenizer, list(zip(contexts, texts, strict=True)))
        assert [list(ids) for _, ids in encoded] == line["ids"], (line["task"], number)
        assert [len(before) for before, _ in encoded] == line["context_ids"]
        if place % (1 if os.environ.get("EVAL_ALL_REFERENCES") else 12) == 0:
            requests = [Request(tuple(a), tuple(b), line["task"]) for a, b in encoded]
            asked += zip(requests, line["logprobs"], line["greedy"], strict=True)
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    requests = [request for request, _, _ in asked]
    scores = score_requests(Engine(model, row_tokens=1024, device="cpu"), requests)
    for score, (request, logprob, is_greedy) in zip(scores, asked, strict=True):
        assert score.logprob == pytest.approx(logprob, abs=2e-3), request.name
        assert score.is_greedy == is_greedy, request.name


def scored(question: Line, line: Line, metric: str, *, alone: bool = False) -> pa.Table:
    """Candidates as a task's cache has them, with what a model gave; or the right one alone."""
    texts, given = question["continuations"], line["logprobs"]
    count = len(texts) // 2 if NORMALIZATIONS.get(metric) == "pmi" else len(texts)
    right = (question["gold_idx"] or 0) if count > 1 else 0
    columns = {
        "item": ["0"] * count,
        "cluster": [None] * count,
        "stratum": [None] * count,
        "candidate": list(range(count)),
        "gold": [number == right for number in range(count)],
        "logprob": given[:count],
        "unconditional": given[count:] or [None] * count,
        "tokens": list(map(len, line["ids"][:count])),
        "chars": list(map(len, texts[:count])),
        "bytes": [len(text.encode()) for text in texts[:count]],
        "is_greedy": line["greedy"][:count],
    }
    table = pa.Table.from_pydict(columns, schema=SCHEMA)
    return table.slice(right, 1) if alone else table


def test_a_task_from_the_suite_to_its_verdicts(
    world: World, mirrors: dict[str, str], tmp_path: Path
) -> None:
    own = {"provider": "olmo_eval", "task": "coqa:gen:olmo3base", "limit": 2}
    settings = {"mirrors": mirrors, "sequence_length": 2048}
    providers = {"olmo_eval": str(environment())}
    plan = ask_for_answers(world, {"theirs": own}, providers=providers, **settings)
    meta = json.loads((plan.generation_folder("theirs") / "meta.json").read_text())
    assert meta["provider"]["stop"] == ["\n\n", "Answer:", "Question:"]
    assert meta["provider"]["golds"] == {"f1:f1": 1.0}
    path = tmp_path / "completions.jsonl"
    texts = {"coqa:gen:olmo3base/0": " three", "coqa:gen:olmo3base/1": " not that"}
    path.write_text("\n".join(json.dumps({"id": i, "completion": t}) for i, t in texts.items()))
    rows, summary = verify_by_hand(plan, "theirs", path)
    assert [row["verdicts"]["f1:f1"]["credit"] for row in rows] == [1, 0]
    assert summary["primary"] == "f1:f1"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "sys.version_info = (3, 11)",
            r"needs Python 3.12 or newer, .* \(`pyenv install 3.12`, `uv",
        ),
        ("sys.modules['olmo_eval'] = None", r"has no olmo_eval; set `providers.olmo_eval` to the"),
        ("metadata.version = lambda name: '4.9.3'", r"antlr4-python3-runtime 4.11, .* has 4.9.3"),
    ],
)
def test_an_environment_that_cannot_do_is_one_sentence(
    program: str, said: str, mirrors: dict[str, str], tmp_path: Path
) -> None:
    """By a Python that begins with that line, such as one of the environment of another version."""
    wrapped = tmp_path / "python"
    start = f"import runpy, sys; from importlib import metadata; {program}; sys.argv[:2] = []"
    run = "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    wrapped.write_text(f'#!/bin/sh\nexec {environment()} -c "{start}; {run}" "$@"\n')
    wrapped.chmod(0o755)
    provider = Provider("olmo_eval", wrapped, VERSIONS["olmo_eval"])
    with pytest.raises(SourceError, match=said) as caught:
        render(provider, "tasks.x", asked(mirrors, "ruler_vt__4096", "generative"))
    assert "\n" not in str(caught.value)


def by_olmo_eval(imports: str, prints: str, given: Any) -> Any:
    done = subprocess.run(
        [environment(), "-c", f"import json, sys\n{imports}\n{prints}"],
        input=json.dumps(given),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_suites_have_the_parts_and_means_that_olmo_eval_gives_them() -> None:
    """Of the names that both know: `*` stands for more than olmo-eval has."""
    theirs = by_olmo_eval(
        "import olmo_eval.evals.tasks\nfrom olmo_eval.evals.suites import get_suite, list_suites",
        "print(json.dumps({n: [[getattr(t, 'name', t) for t in get_suite(n).tasks], "
        "get_suite(n).aggregation.value] for n in list_suites()}))",
        None,
    )
    shared = [name for name in theirs if is_suite(name)]
    assert len(shared) == 62
    alike = {"lambada:olmo3base": "lambada"}
    for name in shared:
        parts, aggregation = theirs[name]
        ours = suite_parts(name)
        nests = any(map(is_suite, ours))
        if name in ("mmlu:bpb", "olmobase:easy:math:bpb"):
            parts = [
                task for part in parts for task in (theirs[part][0] if part in theirs else [part])
            ]
        assert ours == [alike.get(part, part) for part in parts]
        assert nests <= (aggregation == "average_of_averages"), name


def test_what_a_busy_machine_takes_is_no_time_of_an_answer_in_mathematics() -> None:
    """olmo-eval's limit is by the clock, and what it ends counts as wrong."""
    found = by_olmo_eval(
        "import time\nimport olmo_eval.evals.extract.math as mathematics\n"
        "from evaluation.providers.adapters.contract import count_computing\n"
        "parse, answers = mathematics.parse_latex, []\n"
        "def waits(text): time.sleep(3); return parse(text)\n"
        "def computes(text):\n    while True: pass\n"
        "count_computing()",
        "for mathematics.parse_latex in (waits, computes):\n"
        "    answers.append(mathematics.minerva_is_equiv('0.5', '\\\\frac{1}{2}'))\n"
        "print(json.dumps(answers))",
        None,
    )
    assert found == [True, False]


def test_a_mirror_that_is_made_gives_the_same_prompts(
    mirrors: dict[str, str], tmp_path: Path
) -> None:
    """The rows at hand stand in for the hub: parts of splits, files, RULER's archive, examples."""
    names = [
        *("csqa:mc_olmo3base", "basic_skills_coding:rc:olmo3base", "naturalqs:gen:olmo3base"),
        *("mt_mbpp_c:bpb:olmo3base", "hellaswag:rc:olmo3base", "ruler_vt__4096"),
    ]
    failed = by_olmo_eval(
        "from pathlib import Path\n"
        "from evaluation.providers.adapters.olmo_eval_data import Rows\n"
        "from evaluation.providers.adapters.olmo_eval_mirror import mirror\n"
        "mirrors, folder, names = json.load(sys.stdin)\nRows(mirrors)",
        "sys.stdout = sys.stderr\nfailed = mirror(Path(folder), names)\n"
        "sys.stdout = sys.__stdout__\nprint(json.dumps(failed))",
        [mirrors, str(tmp_path / "made"), [*names, "piqa:rc:olmo3base"]],
    )
    assert failed == []
    made = {"*": str(tmp_path / "made")}
    kinds = ["generative" if "gen" in name or "ruler" in name else "choices" for name in names]
    both = [
        asked(where, *one) for where in (mirrors, made) for one in zip(names, kinds, strict=True)
    ]
    found = [answer["lines"] for answer in answers(both, tmp_path)]
    assert found[: len(names)] == found[len(names) :]
    assert all(found)


def test_olmo_eval_has_all_tasks_of_the_shipped_suites() -> None:
    suites = [
        load_suite(ROOT / "task_suites", n)
        for n in ("olmobase_easy", "olmobase_main", "olmobase_fim", "ruler")
    ]
    items = [
        task for one in suites for task in (*one.tasks.values(), *one.generation_tasks.values())
    ]
    names = sorted(
        {task.task for task in items if isinstance(task, ProviderChoices | ProviderTask)}
    )
    found = by_olmo_eval(
        "from evaluation.providers.adapters.olmo_eval_tasks import find_tasks",
        "print(json.dumps([list(find_tasks(name)) for name in json.load(sys.stdin)]))",
        names,
    )
    assert found == [[name] for name in names]
    assert len(names) == 192 + 79 + 16 - 9 + 3 + 3 + 78


def shipped(world: World, **settings: Any) -> StagePlan:
    config = yaml.safe_load(world.config.read_text())
    config["stages"]["stage2"] |= {"suites": ["olmobase_easy"], "objective": [], "bridge": None}
    config["stages"] = {"stage2": config["stages"]["stage2"]}
    config |= {"suites": str(ROOT / "task_suites"), **settings}
    world.config.write_text(yaml.safe_dump(config))
    return plan_stages(load_config(world.config))["stage2"]


def test_a_shipped_suite_without_the_environment_names_the_command(world: World) -> None:
    shipped(world, providers={"olmo_eval": str(world.folder / "nowhere/python")})
    done = world.evaluation("prefill")
    assert done.returncode == 1
    told = r"error: olmo-eval is not installed: .*; run `make providers OLMO_EVAL=.*\n"
    assert re.fullmatch(told, done.stderr)


def test_a_shipped_suite_without_its_data_names_all_that_is_missing(
    world: World, mirrors: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    data = Path(mirrors["*"])
    shipped(
        world,
        providers={"olmo_eval": str(environment())},
        mirrors={"cais/mmlu": str(data / "cais/mmlu"), "ybisk/piqa": str(data / "ybisk/piqa")},
    )
    done = world.evaluation("prefill", "--task", "arc_challenge_rc")
    told = re.fullmatch(
        r"error: the hub cannot be reached, and these datasets have no mirror: (.*); run this with "
        r"internet access, or copy them .*\n",
        done.stderr,
    )
    assert told is not None, done.stderr
    named = told[1].split(", ")
    assert len(named) == len(set(named)) == 23
    assert {"allenai/ai2_arc", "allenai/basic-skills", "gsm8k", "piqa", "cais/mmlu"} & {*named} == {
        *("allenai/ai2_arc", "allenai/basic-skills")
    }


def test_tasks_that_fail_hide_no_others(
    world: World, mirrors: dict[str, str], tmp_path: Path
) -> None:
    names = ("mmlu_anatomy:rc:olmo3base", "sciq:rc:olmo3base", "arc_easy:rc:olmo3base")
    tasks = {name.partition(":")[0]: theirs(name, limit=2) for name in names}
    (tmp_path / "anatomy").mkdir()
    test = Path(mirrors["*"]) / "cais/mmlu/anatomy/test.parquet"
    (tmp_path / "anatomy/test.parquet").symlink_to(test)
    (world.folder / "suites/three.yaml").write_text(yaml.safe_dump({"tasks": tasks}))
    world.change_stage("stage2", suites=["three"], objective=[], bridge=None)
    providers = {"olmo_eval": str(environment())}
    world.change(mirrors={**mirrors, "cais/mmlu": str(tmp_path)}, sequence_length=4096)
    world.change(providers=providers)
    done = world.evaluation("prefill", "--stage", "stage2", "--task", *tasks)
    assert re.search(
        r"error: 2 entries cannot be made: tasks\.mmlu_anatomy: .* no split 'dev', only test; add "
        r"it; tasks\.sciq: sciq:rc:olmo3base draws its examples from all rows",
        done.stderr,
    )
    plan = plan_stages(load_config(world.config))["stage2"]
    assert [plan.task_folder(name).is_dir() for name in tasks] == [False, False, True]


def test_a_right_answer_is_prefilled_with_all_its_bytes(
    world: World, mirrors: dict[str, str], reference: dict[str, list[Line]]
) -> None:
    """Spaces that a prompt ends in are scored with the answer, and are none of its bytes."""
    name = "mt_mbpp_python:bpb:olmo3base"
    tasks = {"theirs": {"provider": "olmo_eval", "task": name}}
    content = yaml.safe_dump({"extends": "base", "tasks": tasks})
    (world.folder / "suites/bits.yaml").write_text(content)
    config = yaml.safe_load(world.config.read_text())
    config["stages"]["stage2"] |= {"suites": ["bits"], "objective": []}
    config |= {"mirrors": mirrors, "sequence_length": 4096}
    config["providers"] = {"olmo_eval": str(environment())}
    world.config.write_text(yaml.safe_dump(config))
    plan = plan_stages(load_config(world.config))["stage2"]
    PREFILLS["tier3"].make(plan, "theirs")
    lines = read(plan.task_folder("theirs") / "examples.jsonl")
    assert len(lines) == len(reference[name])
    for mine, theirs in zip(lines, reference[name], strict=True):
        (candidate,), (answer,) = mine["candidates"], theirs["continuations"]
        assert mine["contexts"][0]["text"] == theirs["prompt"]
        assert theirs["prompt"].endswith("\n")
        assert (candidate["text"], candidate["bytes"]) == (answer, len(answer.encode()))


@pytest.mark.parametrize(
    ("task", "kind", "said"),
    [
        (
            "arc_easy:rc:olmo3bas",
            "choices",
            r"no task and no suite .*did you mean arc_easy:rc:olmo3",
        ),
        ("olmobase:maths", "choices", r"no task and no suite .*did you mean olmobase:math"),
        (
            "ds1000:olmo3base",
            "generative",
            r"use packages \(Python 3.10 with .*give the task `python: ",
        ),
        ("multipl_e_mbpp_sh:olmo3base", "generative", r"as its programs are in C\+\+, Java"),
        (
            "bigcodebench:olmo3base",
            "generative",
            r"use packages \(those that its requirements-eval.txt lists\); give the task `python: <",
        ),
        ("simpleqa", "generative", r"as it has no metric"),
        ("drop:gen:olmo3base", "choices", r"ranks no choices; put it under `generation_tasks`"),
        ("arc_easy:rc:olmo3base", "generative", r"ranks choices; put it under `tasks`"),
        (
            "csqa:mc:olmo3base",
            "choices",
            r"the metric LogprobUncond.* fails in olmo-eval's own code",
        ),
        (
            "arc:mc:olmo3base",
            "choices",
            r"a task for each of arc_challenge:mc_olmo3base, arc_easy:mc",
        ),
        (
            "arc:mc:olmo3base",
            "choices",
            r'different ways; .* `olmo_eval_suites: \["arc:mc:olmo3base"\]`',
        ),
        (
            "olmobase:math",
            "generative",
            r'at different strings; .* `olmo_eval_suites: \["olmobase:math',
        ),
        (
            "olmobase:gen",
            "generative",
            r'are ranked and generated; .* `olmo_eval_suites: \["olmobase:g',
        ),
        ("ruler_niah__4096", "generative", r"different numbers of tokens; .* `olmo_eval_suites: "),
        (
            "olmobase:easy:qa:rc",
            "choices",
            r"\d+ of its 83 tasks have no rows: .*cais/mmlu.*nq_open",
        ),
        (
            "sciq:rc:olmo3base",
            "choices",
            r"draws its examples from all rows.*8 rows in the mirror, 11,679 on",
        ),
        ("mmlu_anatomy:rc:olmo3base", "choices", r"of cais/mmlu has no split 'dev'"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    mirrors: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    kind: str,
    said: str,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if "anatomy" in task:
        test = Path(mirrors["*"]) / "cais/mmlu/anatomy/test.parquet"
        (tmp_path / "anatomy").mkdir()
        (tmp_path / "anatomy/test.parquet").symlink_to(test)
        mirrors = {"cais/mmlu": str(tmp_path)}
    if task == "olmobase:easy:qa:rc":
        mirrors = {"allenai/ai2_arc": str(Path(mirrors["*"]) / "allenai/ai2_arc")}
    provider = Provider("olmo_eval", environment(), VERSIONS["olmo_eval"])
    make = render_choices if kind == "choices" else render
    request = asked(mirrors, task, kind, expands="olmo_eval_suites" in said)
    with pytest.raises(SourceError, match=said) as caught:
        make(provider, "tasks.x", request)
    assert "\n" not in str(caught.value)

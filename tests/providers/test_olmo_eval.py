"""olmo-eval's tasks from their names to verdicts, and what is refused."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.errors import ConfigError, SourceError
from evaluation.providers.program import Provider
from evaluation.providers.render import Document, RankedQuestion, render
from evaluation.settings.olmo_suites import is_suite, suite_parts
from evaluation.settings.provided import VERSIONS, ProviderChoices, ProviderTask
from evaluation.settings.suites import load_suite
from tests.conftest import ROOT
from tests.providers.conftest import planned
from tests.providers.olmo_eval import answers, asked, by_olmo_eval, environment, settings, theirs
from tests.tables import cases
from tests.workflow.world import World


def without_examples(mirrors: dict[str, str], folder: Path) -> str:
    """A mirror of MMLU's anatomy that has the test split alone."""
    (folder / "anatomy").mkdir()
    test = Path(mirrors["*"]) / "cais/mmlu/anatomy/test.parquet"
    (folder / "anatomy/test.parquet").symlink_to(test)
    return str(folder)


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
    objective = [{"tier": "tier3", "want": "improve", "group": "bits", "margin": 0.1}]
    names = {"other": "sciq:bpb:olmo3base", "named": "arc_easy:bpb:olmo3base"}
    tasks = {name: theirs(task, group="bits") for name, task in names.items()}
    plan = planned(world, "tasks", tasks, {"objective": objective})
    assert plan.stage.objective[0].metric == "gold_bits_per_byte"
    tasks["other"]["task"] = "sciq:rc:olmo3base"
    with pytest.raises(ConfigError, match="set `metric: gold_bits_per_byte`, which all have"):
        planned(world, "tasks", tasks, {"objective": objective})


@pytest.mark.parametrize(("program", "said"), cases("providers/refused", "olmo_eval_environments"))
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
        render(provider, "tasks.x", asked(mirrors, "ruler_vt__4096", "generative"), Document)
    assert "\n" not in str(caught.value)


def test_suites_have_the_parts_and_means_that_olmo_eval_gives_them() -> None:
    """Of the names that both know: `*` stands for more than olmo-eval has."""
    theirs = by_olmo_eval(
        "import olmo_eval.evals.tasks\nfrom olmo_eval.evals.suites import get_suite, list_suites",
        "print(json.dumps({n: [[getattr(t, 'name', t) for t in get_suite(n).tasks], "
        "get_suite(n).aggregation.value] for n in list_suites()}))",
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
    shipped = ("olmobase_easy", "olmobase_main", "olmobase_fim", "ruler")
    suites = [load_suite(ROOT / "task_suites", name) for name in shipped]
    items = [
        task for one in suites for task in (*one.tasks.values(), *one.generation_tasks.values())
    ]
    provided = [task for task in items if isinstance(task, ProviderChoices | ProviderTask)]
    names = sorted({task.task for task in provided})
    found = by_olmo_eval(
        "from evaluation.providers.adapters.olmo_eval_tasks import find_tasks",
        "print(json.dumps([list(find_tasks(name)) for name in json.load(sys.stdin)]))",
        names,
    )
    assert found == [[name] for name in names]
    assert len(names) == 192 + 79 + 16 - 9 + 3 + 3 + 78


def ask_for_a_shipped_suite(world: World, **keys: Any) -> None:
    world.change_stage("stage2", suites=["olmobase_easy"], objective=[], bridge=None)
    stages = yaml.safe_load(world.config.read_text())["stages"]
    world.change(suites=str(ROOT / "task_suites"), stages={"stage2": stages["stage2"]}, **keys)


def test_a_shipped_suite_without_the_environment_names_the_command(world: World) -> None:
    ask_for_a_shipped_suite(world, providers={"olmo_eval": str(world.folder / "nowhere/python")})
    done = world.evaluation("prefill")
    assert done.returncode == 1
    told = r"error: olmo-eval is not installed: .*; run `make providers OLMO_EVAL=.*\n"
    assert re.fullmatch(told, done.stderr)


def test_a_shipped_suite_without_its_data_names_all_that_is_missing(
    world: World, mirrors: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    data = Path(mirrors["*"])
    own = settings({name: str(data / name) for name in ("cais/mmlu", "ybisk/piqa")})
    ask_for_a_shipped_suite(world, **own)
    done = world.evaluation("prefill", "--task", "arc_challenge_rc")
    told = re.fullmatch(
        r"error: the hub cannot be reached, and these datasets have no mirror: (.*); run this with "
        r"internet access, or copy them .*\n",
        done.stderr,
    )
    assert told is not None, done.stderr
    named = told[1].split(", ")
    assert len(named) == len(set(named)) == 23
    assert {"allenai/ai2_arc", "allenai/basic-skills"} <= {*named}
    assert not {"gsm8k", "piqa", "cais/mmlu"} & {*named}


def test_tasks_that_fail_hide_no_others(
    world: World, mirrors: dict[str, str], tmp_path: Path
) -> None:
    names = ("mmlu_anatomy:rc:olmo3base", "sciq:rc:olmo3base", "arc_easy:rc:olmo3base")
    tasks = {name.partition(":")[0]: theirs(name, limit=2) for name in names}
    own = settings({**mirrors, "cais/mmlu": without_examples(mirrors, tmp_path)})
    plan = planned(world, "tasks", tasks, {"objective": [], "bridge": None}, **own)
    done = world.evaluation("prefill", "--stage", "stage2", "--task", *tasks)
    assert re.search(
        r"error: 2 entries cannot be made: tasks\.mmlu_anatomy: .* no split 'dev', only test; add "
        r"it; tasks\.sciq: sciq:rc:olmo3base draws its examples from all rows",
        done.stderr,
    )
    assert [plan.cache_folder("tier3", name).is_dir() for name in tasks] == [False, False, True]


@pytest.mark.parametrize(("task", "kind", "said"), cases("providers/refused", "olmo_eval"))
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
        mirrors = {"cais/mmlu": without_examples(mirrors, tmp_path)}
    if task == "olmobase:easy:qa:rc":
        mirrors = {"allenai/ai2_arc": str(Path(mirrors["*"]) / "allenai/ai2_arc")}
    provider = Provider("olmo_eval", environment(), VERSIONS["olmo_eval"])
    request = asked(mirrors, task, kind, expands="olmo_eval_suites" in said)
    with pytest.raises(SourceError, match=said) as caught:
        render(provider, "tasks.x", request, RankedQuestion if kind == "choices" else Document)
    assert "\n" not in str(caught.value)

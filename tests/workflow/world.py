"""A tiny world to run the whole workflow in: tokenizer, model, checkpoints, text and questions."""

import contextlib
import hashlib
import json
import random
import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from demo.nanotron_writer import import_hf
from evaluation.prefill.tiers import PREFILLS
from evaluation.settings.config import load_config
from evaluation.settings.plan import StagePlan
from evaluation.settings.planning import plan_stages
from tests.histories.warm import ROOT, Ended, run_python, well

WORDS = "the cat sat on a mat while dogs ran far over green hills under blue skies".split()

CONFIG = """\
results: WORLD/results
cache: WORLD/cache
suites: WORLD/suites
mirrors: {made/text: WORLD/data/text, made/quiz: WORLD/data/quiz}
tokenizer:
  name: WORLD/tokenizer
sequence_length: 64
stages:
  stage1:
    checkpoints: WORLD/ckpts/stage1
    steps: [10, 20]
    suites: [base]
  stage2:
    checkpoints: WORLD/ckpts/stage2
    steps: all
    suites: [sft]
    bridge: {stage: stage1, step: 20}
    objective:
    - {tier: tier2, want: keep, margin: 0.5}
    - {tier: tier3, want: keep, margin: 0.5}
"""
BASE = """\
slices:
  text: {dataset: made/text, tokens: 1280}
tasks:
  quiz:
    dataset: made/quiz
    split: test
    choices: answers
    gold: label
    context: "Question: {{ question }}\\nAnswer:"
"""
SFT = """\
extends: base
probes:
  colour:
    category: concise
    messages: [{role: user, content: Name a colour.}]
    checks: [{check: no_chat_artifacts}]
    max_new_tokens: 8
"""
ANSWERED: dict[str, Any] = {
    "dataset": "made/quiz",
    "split": "test",
    "prompt": "Q: {{ question }} A:",
    "chat": False,
    "document": {"gold": "'a'"},
}
"""What tasks of generated answers share here; a letter is what a tiny model may well say."""
FIRST_LETTER = {"kind": "pattern", "pattern": "(?s)^ *([^ ])", "form": "{gold}"}
LAST_LETTER = {"kind": "pattern", "pattern": "([a-z])", "take": "last", "form": "{gold}"}


@dataclass(frozen=True)
class World:
    """A folder with everything in it, and ways to run commands there."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def plans(self) -> dict[str, StagePlan]:
        return plan_stages(load_config(self.config))

    @property
    def stages(self) -> dict[str, Any]:
        """As they stand in the configuration."""
        stages: dict[str, Any] = yaml.safe_load(self.config.read_text())["stages"]
        return stages

    def results(self, *parts: str) -> Path:
        return self.folder.joinpath("results", *parts)

    def read(self, *parts: str) -> Any:
        return json.loads(self.results(*parts).read_text())

    def weight(self, step: str, part: str) -> Path:
        """A file of the weights of a checkpoint, such as `stage1/10`."""
        files = (self.folder / "ckpts" / step / "model").rglob(f"*{part}*/model_weight*")
        return sorted(files)[0]

    def change(self, **keys: Any) -> None:
        content = yaml.safe_load(self.config.read_text())
        content.update(keys)
        self.config.write_text(yaml.safe_dump(content))

    def change_suite(self, name: str, **keys: Any) -> None:
        path = self.folder / "suites" / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}))

    def change_stage(self, name: str, **keys: Any) -> None:
        stages = self.stages
        stages[name] |= keys
        self.change(stages=stages)

    def with_results(self, folder: Path, **keys: Any) -> "World":
        """The same with results of its own in another folder, and with these keys."""
        folder.mkdir(exist_ok=True)
        other = World(folder)
        other.config.write_text(self.config.read_text())
        other.change(results=str(other.results()), **keys)
        return other

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """The configuration is at the end what it was."""
        before = self.config.read_text()
        try:
            yield
        finally:
            self.config.write_text(before)

    def snakemake(
        self, *arguments: str, snakefile: str = "workflow/Snakefile", cold: bool = False
    ) -> Ended:
        command = ["-m", "snakemake", *arguments, "--configfile", str(self.config)]
        command += ["--cores", "2", "-s", str(ROOT / snakefile)]
        return run_python(command, self.folder, cold=cold, EVALUATION_CONFIG=str(self.config))

    def make(self, *targets: str) -> Ended:
        """`snakemake prefill`, and then these, which end well."""
        well(self.snakemake("prefill"))
        return well(self.snakemake(*targets))

    def evaluation(self, *arguments: str) -> Ended:
        command = ["-m", "evaluation", *arguments]
        return run_python(command, self.folder, EVALUATION_CONFIG=str(self.config))


def jobs(done: Ended) -> set[str]:
    """Names of the rules that a run went through."""
    return set(re.findall(r"(?m)^(?:local)?rule (\w+):$", done.stdout + done.stderr))


def stored_scores(results: Path) -> dict[str, str]:
    """Digest of every score by checkpoint and item: another one if it was made again."""
    found = {}
    for path in sorted((results / "scores").glob("*/*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                found[f"{path.parent.name}/{name}"] = hashlib.sha256(archive.read(name)).hexdigest()
    for path in sorted((results / "scores").glob("*/*.parquet")):
        with contextlib.suppress(FileNotFoundError):  # just being packed
            found[f"{path.parent.name}/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def flip(path: Path) -> None:
    """Turns a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def sentence(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=12)) + "."


def build_world(folder: Path) -> World:
    """Two stages of two checkpoints each (tp 1 and 2), one slice, one task, one probe."""
    dice = random.Random(0)
    texts = [" ".join(sentence(dice) for _ in range(8)) for _ in range(60)]
    build_tokenizer(texts, folder / "tokenizer")
    write_rows(folder / "data" / "text" / "train.jsonl", [{"text": text} for text in texts])
    questions = [
        {"question": sentence(dice), "answers": dice.sample(WORDS, 3), "label": index % 3}
        for index in range(24)
    ]
    write_rows(folder / "data" / "quiz" / "test.jsonl", questions)
    steps = [("stage1", 10), ("stage1", 20), ("stage2", 5), ("stage2", 15)]
    build_checkpoints(folder, [(f"ckpts/{stage}", step) for stage, step in steps])
    (folder / "suites").mkdir()
    (folder / "suites" / "base.yaml").write_text(BASE)
    (folder / "suites" / "sft.yaml").write_text(SFT)
    world = World(folder)
    world.config.write_text(CONFIG.replace("WORLD", str(folder)))
    return world


def build_prefilled(folder: Path) -> World:
    world = build_world(folder)
    well(world.evaluation("prefill"))
    return world


def paper(folder: Path, *stages: str) -> World:
    """A world on paper: all that a plan is made of, with steps 10 and 20 on disk that cannot be scored."""
    (folder / "suites").mkdir(parents=True)
    (folder / "suites/base.yaml").write_text(yaml.safe_dump({"slices": {"text": {"dataset": "t"}}}))
    world = World(folder)
    content: dict[str, Any] = {name: str(folder / name) for name in ("results", "cache", "suites")}
    content |= {"tokenizer": {"name": "made/tokenizer"}, "sequence_length": 64, "stages": {}}
    for name in stages:
        for step in (10, 20):
            (folder / "ckpts" / name / str(step)).mkdir(parents=True)
            (folder / "ckpts" / name / str(step) / "config.json").write_text('{"vocab_size": 9}')
        content["stages"][name] = {
            "checkpoints": str(folder / "ckpts" / name),
            "steps": [10, 20],
            "suites": ["base"],
        }
    world.config.write_text(yaml.safe_dump(content, sort_keys=False))
    return world


def refused(done: Ended) -> str:
    """What a command says that ends with exit code 1 and no traceback."""
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "Traceback (most" not in said
    return said


def copy_world(pristine: World, folder: Path) -> World:
    """A copy to break; its configuration points into it, but for the tokenizer's name."""
    shutil.copytree(pristine.folder, folder, dirs_exist_ok=True)
    text = pristine.config.read_text().replace(str(pristine.folder), str(folder))
    text = text.replace(f"name: {folder}/tokenizer", f"name: {pristine.folder}/tokenizer")
    world = World(folder)
    world.config.write_text(text)
    return world


def ask_for_answers(world: World, tasks: dict[str, Any], **settings: Any) -> StagePlan:
    """Gives stage 2 these generation tasks, prefilled, and the configuration these keys."""
    plan = want_answers(world, tasks, **settings)
    for name in tasks:
        PREFILLS["tier5"].make(plan, name)
    return plan


def want_answers(world: World, tasks: dict[str, Any], **settings: Any) -> StagePlan:
    """The same without the prefill."""
    content = {"extends": "base", "generation_tasks": tasks}
    (world.folder / "suites" / "answers.yaml").write_text(yaml.safe_dump(content))
    world.change_stage("stage2", suites=["answers"])
    world.change(**{"verification": {"workers": 1}, **settings})
    return world.plans["stage2"]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def build_tokenizer(texts: list[str], folder: Path) -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>")
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def build_checkpoints(
    folder: Path, places: Sequence[tuple[str, int]], *, positions: int = 64, width: int = 32
) -> None:
    """Checkpoints of Nanotron by folder and step, with random weights that differ, and the models in `hf`."""
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=width // 16,
        num_attention_heads=width // 8,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        tie_word_embeddings=True,
    )
    for number, (name, step) in enumerate(places):
        torch.manual_seed(number)
        source = folder / "hf" / str(number)
        LlamaForCausalLM(config).save_pretrained(source)
        import_hf(
            source,
            folder / name,
            tp=1 + number % 2,
            step=step,
            sequence_length=positions,
            tokenizer_name=str(folder / "tokenizer"),
        )
